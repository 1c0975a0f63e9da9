"""Collects what the plan of an erasure follows from: ledgers, and the rows for which the condition is true. Writes nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Offsets, check_owner, high_water_marks
from lakebound.ledger.erased import ErasedRows
from lakebound.ledger.marks import NextOffsets, lowest_of_all
from lakebound.operations.backfill.half_done import check_no_redo_unfinished
from lakebound.operations.erase.copying import Hit, find_hits
from lakebound.operations.erase.matching import Matches, matches
from lakebound.operations.erase.plan import (
    ErasedShare,
    ErasePlan,
    NothingToEraseError,
    RepeatedPositionsError,
    remaining,
)
from lakebound.operations.maintenance.planning_rules import planning_of
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.state import check_stateless
from lakebound.spec.table import TableSpec
from lakebound.spec.times import in_utc
from lakebound.tables.erased import check_size, erased_rows
from lakebound.tables.erasing import ErasesRows
from lakebound.tables.format_rules import rules_of
from lakebound.tables.places import Places
from lakebound.tables.stale_ledger import read_not_behind
from lakebound.tables.table import Table, open_table


@dataclass(frozen=True)
class _Held:
    table: Table
    coverage: Offsets


def prepare(spec: PipelineSpec, places: Places, where: str, below: NextOffsets | None = None) -> ErasePlan:
    """Return what an erasure would do, as of now. A stream may run meanwhile.

    Every table loses the same rows: those for which the condition is true in any of them.

    Args:
        spec: The pipeline.
        places: Where its tables are.
        where: The condition, in SQL.
        below: Only rows of offsets below these; None: below what every table has landed by now.

    Raises:
        WithStateError: The pipeline's rows are of windows.
        NothingToEraseError: No row is meant.
        RedoUnfinishedError: A redo is done in part: a position may name another row in each table.
        BadConditionError: The condition cannot be evaluated.
        RowsNotInFilesError: A table has files that are not rewritten here.
        TableFeatureError: A table has a feature with which that is not done.
        RowsNotReadError: Polars cannot read a table.
        RepeatedPositionsError: Rows that are meant cannot be told from others.
        TooManyErasedError: It is too many.
    """
    check_stateless(spec, "erasure")
    opened = (_held(spec, one, places) for one in spec.tables)
    held = [one for one in opened if one is not None]
    if not held:
        raise NothingToEraseError(spec.pipeline, "none of its tables exists yet")
    marks = lowest_of_all([high_water_marks(one.coverage) for one in held])
    bound = {topic: dict(partitions) for topic, partitions in (marks if below is None else below).items()}
    ids = {topic: offsets.topic_id for one in held for topic, offsets in one.coverage.items()}
    found = {one.table.spec.id: matches(one.table.spec, places, where, bound, ids) for one in held}
    every: ErasedRows = reduce(ErasedRows.plus, (erased_rows(one.kafka) for one in found.values()), ErasedRows())
    if not every:
        raise NothingToEraseError(spec.pipeline, "; ".join(["no row of its tables is meant", *_notes(found)]))
    check_size(f"pipeline {spec.pipeline!r}", every)
    shares = tuple(_share(spec, one.table, found[one.table.spec.id], every) for one in held)
    return ErasePlan(
        pipeline=spec.pipeline,
        where=where,
        below=bound,
        erased=every,
        tables=shares,
        remains=remaining(spec.topics, spec.quarantine_table.id, [one.id for one in spec.other_targets]),
        notes=(*_notes(found), *_readers(held)),
    )


def _held(spec: PipelineSpec, one: TableSpec, places: Places) -> _Held | None:
    table = open_table(one, places)
    entry = read_not_behind(table, places).entry if table.exists() else None
    if entry is None:
        return None
    check_owner(entry, spec.pipeline, one.id)
    check_no_redo_unfinished(spec.pipeline, one.id, entry)
    erasable(table).check_may_erase()
    return _Held(table, entry.coverage)


def _share(spec: PipelineSpec, table: Table, own: Matches, every: ErasedRows) -> ErasedShare:
    hits = find_hits(erasable(table), every)
    _check_apart(table.spec.id, hits, own)
    return ErasedShare(
        table=table.spec.id,
        rows=sum(hit.going.num_rows for hit in hits),
        files=len(hits),
        size_bytes=sum(hit.file.size_bytes for hit in hits),
        kept=_kept(spec, table),
    )


def erasable(table: Table) -> ErasesRows:
    """Return a table as one of which rows can be erased."""
    if not isinstance(table, ErasesRows):
        raise LakeboundError(f"table {table.spec.id}: no rows can be taken out of a {table.spec.format}")
    return table


def _check_apart(table: str, hits: Sequence[Hit], own: Matches) -> None:
    """Check that no row goes because it has the position of another one."""
    going = pa.concat_tables([hit.going for hit in hits]) if hits else own.kafka.slice(0, 0)
    repeated = going.num_rows - erased_rows(going).rows
    others = going.num_rows - own.kafka.num_rows
    if repeated and others > 0:
        raise RepeatedPositionsError(table, min(repeated, others))


def _kept(spec: PipelineSpec, table: Table) -> str:
    policy, now_ms, name = spec.maintenance, int(time.time() * 1000), table.spec.id
    if not policy.enabled:
        return f"{name}: older versions show the rows until you expire them: the pipeline's maintenance is off"
    rules = planning_of(name)
    seconds = rules.shown_for_seconds(name, policy, table.properties(), now_ms)
    return (
        f"{name}: older versions show the rows, and their files hold them, until maintenance's {rules.ends_by}: of a run after "
        f"{in_utc(int(now_ms + seconds * 1000))}, or later if a registered reader or a tag needs an older version"
    )


def _notes(found: Mapping[str, Matches]) -> list[str]:
    notes = []
    for table, one in found.items():
        if one.later:
            notes.append(f"{table}: {one.later:,} rows that landed later are not part of this plan; erase again")
        if one.without_origin:
            notes.append(
                f"{table}: {one.without_origin:,} rows for which the condition is true have no _kafka, because another tool "
                f"wrote them: they stay; delete them with that tool"
            )
    return notes


def _readers(held: Sequence[_Held]) -> list[str]:
    options = {name: rules_of(name).skips_changes for name in sorted({one.table.spec.format for one in held})}
    return [
        f"Spark's streaming readers of a {name} table stop at this commit without {option}" for name, option in options.items()
    ]
