"""At a start, the pipeline's tables become what it needs, or it is refused before anything is written.

All tables are looked at first. Where one forbids, none is created and none is altered.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.errors import CommitRefusedError, LakeboundError, LeaseLostError, SchemaChangedError, TableMismatchError
from lakebound.ledger.entry import carried
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.spec.value import JsonValueSpec
from lakebound.tables.places import Places
from lakebound.tables.plan import Difference, FoundTable, TablePlan, plan_table
from lakebound.tables.schema_change import names
from lakebound.tables.table import Table, open_table

log = logging.getLogger(__name__)

SOURCE = "schema"
"""Of the findings."""

_NAMED = 10


class ColumnsMovedError(LakeboundError):
    """A rewind or a start has changed the tables' columns while somebody landed beside the stream."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the columns of its tables changed while this ran; no more records were landed. Run it "
            f"again"
        )


@dataclass(frozen=True)
class Settled:
    """How the tables stand to the pipeline.

    Attributes:
        plans: By table id.
        unhoused: Fields of records that a table has no column for, and that send a record to quarantine.
    """

    plans: Mapping[str, TablePlan]
    unhoused: frozenset[str] = frozenset()

    @property
    def differences(self) -> dict[str, tuple[str, ...]]:
        """Of the tables in which nothing can be landed."""
        return {table: tuple(map(str, plan.differences)) for table, plan in self.plans.items() if plan.differences}

    @property
    def left_out(self) -> dict[str, frozenset[str]]:
        """Columns of the pipeline that a table does not get, as ``schema_evolution`` says, by table id."""
        return {table: frozenset(names(plan.columns.left_out)) for table, plan in self.plans.items() if plan.columns.left_out}


def compare_tables(
    spec: PipelineSpec, places: Places, wanted: Mapping[str, pa.Schema], value_fields: Sequence[str] = ()
) -> Settled:
    """Return how the pipeline's tables stand to what it says; writes nothing.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        wanted: Columns by table id; tables that are not named are left alone.
        value_fields: Top-level fields of the records' schema.

    Raises:
        LakeboundError: A table's ledger cannot be read, or is in doubt.
    """
    chosen = [one for one in (*spec.tables, spec.quarantine_table) if one.id in wanted]
    plans = {one.id: _plan(spec, one, places, wanted[one.id], value_fields) for one in chosen}
    left_out = [name for plan in plans.values() for name in names(plan.columns.left_out)]
    sends = spec.schema_evolution == "quarantine" and isinstance(spec.value, JsonValueSpec)
    return Settled(plans, frozenset(left_out) if sends else frozenset())


def settle_tables(
    spec: PipelineSpec,
    places: Places,
    wanted: Mapping[str, pa.Schema],
    value_fields: Sequence[str] = (),
    *,
    own_epoch: int,
    check_lease: Callable[[], None],
) -> Settled:
    """Give existing tables what they lack, and return how they stand. With the lease; before the stream reads the ledgers.

    New tables are not created yet, but nothing that is known now can keep them from it. Cut short between two tables, the next
    start goes on.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        wanted: Columns by table id; tables that are not named are left alone.
        value_fields: Top-level fields of the records' schema.
        own_epoch: Of this application's lease.
        check_lease: Raises LeaseLostError when the lease is gone; called before anything is written.

    Raises:
        SchemaChangedError: A table cannot be what the pipeline says; a finding says so, too.
        TableMismatchError: A table's format refuses the change.
        LeaseLostError: A later application writes for this pipeline: it has compared by itself.
    """
    control = ControlFolder(places.home, spec.pipeline, places.state)
    settled = compare_tables(spec, places, wanted, value_fields)
    check_lease()
    if settled.differences:
        write_findings(control, SOURCE, [_finding(table, found) for table, found in settled.differences.items()])
        raise SchemaChangedError(spec.pipeline, settled.differences)
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

    Args:
        spec: Pipeline whose tables are compared.
        places: Where this machine keeps tables and state folders.
        wanted: Columns that the pipeline gives its tables, by table id; tables that are not named are left alone.
        value_fields: Top-level fields of the records' schema.

    Raises:
        SchemaChangedError: A table cannot take the columns, or not before the pipeline's next start has altered it.
    """
    settled = compare_tables(spec, places, wanted, value_fields)
    waiting = {table: tuple(_waiting(spec.pipeline, plan)) for table, plan in settled.plans.items() if plan.columns.is_change}
    if settled.differences or waiting:
        raise SchemaChangedError(spec.pipeline, settled.differences | waiting)
    return settled


def check_unmoved(
    spec: PipelineSpec, places: Places, wanted: Mapping[str, pa.Schema], before: Settled, value_fields: Sequence[str] = ()
) -> None:
    """Check that tables and columns still match as before: records decoded for other columns would lose values silently.

    Args:
        spec: Pipeline whose tables are compared.
        places: Where this machine keeps tables and state folders.
        wanted: Columns that the pipeline gives its tables, by table id; tables that are not named are left alone.
        before: How the tables stood when the records were decoded.
        value_fields: Top-level fields of the records' schema.

    Raises:
        SchemaChangedError: As of ``check_settled``.
        ColumnsMovedError: They no longer match as before, and could take records that are decoded again.
    """
    if check_settled(spec, places, wanted, value_fields) != before:
        raise ColumnsMovedError(spec.pipeline)


def _plan(spec: PipelineSpec, one: TableSpec, places: Places, wanted: pa.Schema, value_fields: Sequence[str]) -> TablePlan:
    table = open_table(one, places)
    found = _look(table) if table.exists() else None
    plan = plan_table(spec, one, found, wanted, value_fields)
    return plan if found is not None or plan.differences else _tried(table, wanted, plan)


def _look(table: Table) -> FoundTable:
    entry = table.read_ledger().entry
    try:
        layout = table.layout()
    except TableMismatchError:
        layout = None
    return FoundTable(
        schema=table.schema(),
        fields=None if layout is None else layout.fields,
        reserved=table.partition_names(),
        properties=table.properties(),
        owner=entry.pipeline if entry is not None else None,
        quarantine=entry.quarantine if entry is not None else None,
    )


def _tried(table: Table, wanted: pa.Schema, plan: TablePlan) -> TablePlan:
    """Return the plan of a new table, with what its format says against it."""
    try:
        table.check_new(wanted)
    except TableMismatchError as exc:
        return TablePlan(is_new=True, differences=(Difference(exc.difference),))
    return plan


def _waiting(pipeline: str, plan: TablePlan) -> Iterable[str]:
    todo = f"restart it first: `lakebound control {pipeline} restart`"
    for addition in plan.columns.additions:
        yield f"column {'.'.join(addition.path)} comes with the pipeline's next start: {todo}"
    for widening in plan.columns.widenings:
        yield f"column {'.'.join(widening.path)} is widened by the pipeline's next start: {todo}"


def _change(one: TableSpec, places: Places, plan: TablePlan, own_epoch: int, check_lease: Callable[[], None]) -> None:
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
            entry = None if view.entry is None else carried(view.entry)
            if plan.columns.is_change:
                table.change_schema(plan.columns, entry)
            if plan.properties:
                table.set_properties(plan.properties, entry)


def _finding(table: str, found: Sequence[str]) -> Finding:
    first = f"{found[0]}" + (f", and {len(found) - 1} more differences" if len(found) > 1 else "")
    return Finding(
        cause=f"schema of {table}",
        severity=Severity.CRITICAL,
        what=f"{table} does not take what the pipeline produces: {first}",
        since=time.time(),
        evidence={f"difference {number}": text for number, text in enumerate(found[:_NAMED], 1)},
        runbook="schema-changed",
        done="the application refused to start; no table was created or changed",
    )
