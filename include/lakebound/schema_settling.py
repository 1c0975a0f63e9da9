"""At a start, existing tables get the columns that the pipeline now produces, or it is refused before anything is written."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from lakebound.control import ControlFolder
from lakebound.errors import CommitRefusedError, LakeboundError, LeaseLostError, SchemaChangedError
from lakebound.findings import Finding, Severity, write_findings
from lakebound.ledger import carried
from lakebound.run_spec import Places
from lakebound.schema_change import Difference, SchemaPlan, names, plan_schema
from lakebound.spec import JsonValueSpec, PipelineSpec, SchemaEvolution, TableSpec
from lakebound.tables import Table, open_table
from lakebound.tables.schemas import partition_names

log = logging.getLogger(__name__)

SOURCE = "schema"
"""Of the findings."""

_NAMED = 10


class ColumnsMovedError(LakeboundError):
    """A rewind or a start has changed the tables' columns while somebody landed beside the stream."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the columns of its tables have changed meanwhile; nothing more was landed: run it again"
        )


@dataclass(frozen=True)
class Settled:
    """How the tables stand to the pipeline's columns.

    Attributes:
        plans: By table id, of those that exist.
        unhoused: Fields of records that a table has no column for, and that send a record to quarantine.
    """

    plans: Mapping[str, SchemaPlan]
    unhoused: frozenset[str] = frozenset()

    @property
    def differences(self) -> dict[str, tuple[Difference, ...]]:
        """Of the tables that cannot take the pipeline's columns."""
        return {table: plan.differences for table, plan in self.plans.items() if plan.differences}

    @property
    def left_out(self) -> dict[str, frozenset[str]]:
        """Columns of the pipeline that a table does not get, as ``schema_evolution`` says, by table id."""
        return {table: frozenset(names(plan.left_out)) for table, plan in self.plans.items() if plan.left_out}


def compare_schemas(
    spec: PipelineSpec, places: Places, wanted: Mapping[str, pa.Schema], value_fields: Sequence[str] = ()
) -> Settled:
    """Return how the pipeline's existing tables stand to the columns that they are to take; writes nothing.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        wanted: Columns by table id; tables that are not named are left alone.
        value_fields: Top-level fields of the records' schema.
    """
    chosen = [one for one in (*spec.tables, spec.quarantine_table) if one.id in wanted]
    found = {one.id: table for one in chosen if (table := open_table(one, places)).exists()}
    plans = {
        one.id: plan_schema(
            found[one.id].schema(), wanted[one.id], _policy(spec, one), one.format, value_fields, partition_names(one)
        )
        for one in chosen
        if one.id in found
    }
    left_out = [name for plan in plans.values() for name in names(plan.left_out)]
    sends = spec.schema_evolution == "quarantine" and isinstance(spec.value, JsonValueSpec)
    return Settled(plans, frozenset(left_out) if sends else frozenset())


def settle_schemas(
    spec: PipelineSpec,
    places: Places,
    wanted: Mapping[str, pa.Schema],
    value_fields: Sequence[str] = (),
    *,
    own_epoch: int,
    check_lease: Callable[[], None],
) -> Settled:
    """Give existing tables what they lack, and return how they then stand. With the lease; before the stream reads the ledgers.

    Nothing is altered while any table forbids: all are compared first. Cut short between two tables, the next start goes on.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        wanted: Columns by table id; tables that are not named are left alone.
        value_fields: Top-level fields of the records' schema.
        own_epoch: Of this application's lease.
        check_lease: Raises LeaseLostError when the lease is gone; called before anything is written.

    Raises:
        SchemaChangedError: A table cannot take the pipeline's columns; a finding says so, too.
        TableMismatchError: A table's format refuses the change.
        LeaseLostError: A later application writes for this pipeline: it has compared by itself.
    """
    control = ControlFolder(places.home, spec.pipeline)
    settled = compare_schemas(spec, places, wanted, value_fields)
    check_lease()
    if settled.differences:
        write_findings(control, SOURCE, [_finding(table, found) for table, found in settled.differences.items()])
        raise SchemaChangedError(spec.pipeline, _told(settled))
    for one in (*spec.tables, spec.quarantine_table):
        plan = settled.plans.get(one.id)
        if plan is not None and plan.is_change:
            log.info("%s: %s", one.id, "; ".join(plan.told()))
            _change(one, places, plan, own_epoch, check_lease)
    check_lease()
    write_findings(control, SOURCE, [])
    return settled


def check_settled(
    spec: PipelineSpec, places: Places, wanted: Mapping[str, pa.Schema], value_fields: Sequence[str] = ()
) -> Settled:
    """Return how the tables stand, for who lands beside the stream and alters nothing.

    Raises:
        SchemaChangedError: A table cannot take the columns, or not before the pipeline's next start has altered it.
    """
    settled = compare_schemas(spec, places, wanted, value_fields)
    waiting = {
        table: tuple(Difference(one.path, "comes with the pipeline's next start: restart it first") for one in plan.additions)
        + tuple(Difference(one.path, "is widened by the pipeline's next start: restart it first") for one in plan.widenings)
        for table, plan in settled.plans.items()
        if plan.is_change
    }
    if settled.differences or waiting:
        told = _told(settled) | {table: [str(one) for one in found] for table, found in waiting.items()}
        raise SchemaChangedError(spec.pipeline, told)
    return settled


def check_unmoved(
    spec: PipelineSpec, places: Places, wanted: Mapping[str, pa.Schema], before: Settled, value_fields: Sequence[str] = ()
) -> None:
    """Check that the tables stand to the columns as they did: what was decoded for others would lose values without a word.

    Raises:
        SchemaChangedError: As of ``check_settled``.
        ColumnsMovedError: They stand otherwise, and could take what is decoded anew.
    """
    if check_settled(spec, places, wanted, value_fields) != before:
        raise ColumnsMovedError(spec.pipeline)


def _policy(spec: PipelineSpec, one: TableSpec) -> SchemaEvolution:
    return "refuse" if one.id == spec.quarantine_table.id else spec.schema_evolution


def _change(one: TableSpec, places: Places, plan: SchemaPlan, own_epoch: int, check_lease: Callable[[], None]) -> None:
    """Alter the table; a commit of somebody else that was faster is let pass."""
    for attempt in Retrying(
        retry=retry_if_exception_type(CommitRefusedError), stop=stop_after_attempt(8), wait=wait_random(0.05, 0.5), reraise=True
    ):
        with attempt:
            table: Table = open_table(one, places)
            view = table.read_ledger()
            if view.entry is not None and view.epoch > own_epoch:
                raise LeaseLostError(view.entry.pipeline, own_epoch, view.epoch)
            check_lease()
            table.change_schema(plan, None if view.entry is None else carried(view.entry))


def _told(settled: Settled) -> dict[str, list[str]]:
    return {table: [str(one) for one in found] for table, found in settled.differences.items()}


def _finding(table: str, found: Sequence[Difference]) -> Finding:
    first = f"{found[0]}" + (f", and {len(found) - 1} more differences" if len(found) > 1 else "")
    return Finding(
        cause=f"schema of {table}",
        severity=Severity.CRITICAL,
        what=f"{table} does not take what the pipeline produces: {first}",
        since=time.time(),
        evidence={".".join(one.path): one.text for one in found[:_NAMED]},
        runbook="schema-changed",
        done="the application refused to start; no table was changed",
    )
