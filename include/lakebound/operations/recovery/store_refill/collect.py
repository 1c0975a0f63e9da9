"""Collects the facts from which a store is filled from a table. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pyarrow as pa

from lakebound.errors import BadEntryError, LakeboundError, RowsNotReadError, TableMismatchError
from lakebound.landing.to_stores.shape import StoreShape
from lakebound.landing.to_stores.store_rows import staged_schema
from lakebound.landing.to_stores.value_bounds import value_problems
from lakebound.ledger.entry import check_owner
from lakebound.ledger.foreign_changes import remembered
from lakebound.operations.recovery.store_rebuild import StoreFacts, collect_store
from lakebound.operations.recovery.store_refill.facts import RefillFacts, RowFacts, SourceFacts
from lakebound.operations.recovery.store_refill.rows import about_how_many_keys, read_rows
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.tables.format_rules import rules_of
from lakebound.tables.places import Places
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.stale_ledger import read_not_behind
from lakebound.tables.table import Table, open_table

Reads = Literal["ledgers", "history", "rows"]


class NoSuchTableError(LakeboundError):
    """The pipeline has no such table."""

    def __init__(self, pipeline: str, table: str, known: list[str]) -> None:
        super().__init__(
            f"pipeline {pipeline!r} has no one table {table!r} from which a store can be filled; its tables are: "
            f"{', '.join(known) or 'none'}"
        )


def collect_refill(pipeline: PipelineSpec, places: Places, store: str, table: str, *, reads: Reads) -> RefillFacts:
    """Return the facts of a plan.

    Args:
        pipeline: The pipeline.
        places: Where its tables are.
        store: The store's name or id.
        table: The table's name or id.
        reads: How much is read of the table: its ledger; all entries that are kept, too; and all of its rows.

    Raises:
        NoSuchStoreError: The pipeline has no such store.
        NoSuchTableError: It has no such table.
        ForeignTableError: One of the two is another pipeline's.
        StoreUnavailableError: The store does not answer.
    """
    chosen = chosen_table(pipeline, table)
    held = collect_store(pipeline, store)
    source = collect_source(pipeline, places.read_only(), held, chosen, reads_history=reads != "ledgers")
    is_usable = reads == "rows" and source.schema is not None and not source.changes and not source.erased
    rows = _look_at_rows(held.spec, places, source) if is_usable else None
    return RefillFacts(held, source, rows)


def chosen_table(pipeline: PipelineSpec, name: str) -> TableSpec:
    """Return a table of a pipeline by its name or id.

    Raises:
        NoSuchTableError: None or several are called so.
    """
    found = [one for one in pipeline.tables if name in (one.id, one.name)]
    if len(found) != 1:
        raise NoSuchTableError(pipeline.pipeline, name, [one.id for one in pipeline.tables])
    return found[0]


def collect_source(
    pipeline: PipelineSpec, places: Places, store: StoreFacts, spec: TableSpec, *, reads_history: bool
) -> SourceFacts:
    """Return the facts of the table as they are now.

    Args:
        pipeline: The pipeline.
        places: Where its tables are.
        store: The store that is to be filled.
        spec: The table.
        reads_history: Read all entries that are kept.

    Raises:
        ForeignTableError: It is another pipeline's.
    """
    table = open_table(spec, places)
    if not rules_of(spec.format).may_exist(places) or not table.exists():
        return SourceFacts(spec, "there is no such table yet")
    try:
        view = read_not_behind(table, places)
    except LakeboundError as exc:
        return SourceFacts(spec, str(exc))
    if view.entry is None or not (view.coverage or view.entry.former):
        return SourceFacts(spec, "nothing has landed in it")
    check_owner(view.entry, pipeline.pipeline, spec.id)
    found = _columns(store.spec, normalise_schema(table.schema()), store.shape)
    if isinstance(found, str):
        return SourceFacts(spec, found)
    schema, notes = found
    acknowledged, is_whole = _acknowledged(table) if reads_history else ((), True)
    return SourceFacts(
        spec,
        version=view.version,
        coverage=view.coverage,
        former=view.entry.former,
        erased=0 if view.entry.erased is None else view.entry.erased.rows,
        changes=tuple(str(one) for one in remembered(view.entry.foreign_changes, view.foreign_changes)),
        acknowledged=acknowledged,
        is_whole_history=is_whole,
        schema=schema,
        notes=notes,
    )


def lacking_rows(spec: TableSpec, places: Places, source: SourceFacts, rows: int) -> Iterator[str]:
    """Yield why the rows that were read are not those that the metadata of the table counts.

    Args:
        spec: The table.
        places: Where it is.
        source: As it was read.
        rows: How many were read.
    """
    past = open_table(spec, places.read_only()).look_back(source.version)
    if past.missing_files:
        yield f"{len(past.missing_files):,} of its data files are missing, such as {past.missing_files[0]}"
    elif past.rows != rows:
        yield f"{rows:,} rows were read, and its metadata counts {past.rows:,}: somebody has deleted rows of its files"


def _columns(spec: ToStoreSpec, output: pa.Schema, shape: StoreShape | None) -> tuple[pa.Schema, tuple[str, ...]] | str:
    """Return the columns that the store needs, with notes; or why the table does not have them."""
    notes: tuple[str, ...] = ()
    if spec.counters is None and spec.columns is None:
        if shape is not None and shape.kind == "rows" and shape.types:
            wanted = dict.fromkeys((spec.key, *shape.types, *((spec.delete_if,) if spec.delete_if else ())))
            if absent := [name for name in wanted if name not in output.names]:
                return f"the rows of the store have the column {absent[0]!r}, and the table has not"
            left = [name for name in output.names if name not in wanted and name != KAFKA_COLUMN]
            output = pa.schema([output.field(name) for name in (*wanted, KAFKA_COLUMN)])
            notes = (f"columns of the table that the store did not have are left out: {', '.join(left)}",) if left else ()
        else:
            notes = (
                "all columns of the table, because the store's ledger does not say which it had; if the pipeline no longer "
                "writes one of them, the next start is refused: name the columns in the YAML ('columns') before",
            )
    try:
        return staged_schema(spec, output), notes
    except TableMismatchError as exc:
        return str(exc)


def _acknowledged(table: Table) -> tuple[tuple[str, ...], bool]:
    """Return versions of acknowledged changes by others, and whether the history goes back to the first entry."""
    found: list[str] = []
    try:
        for committed in table.entries():
            found += committed.entry.acknowledges
            if committed.entry.kind == "genesis":
                return tuple(found), True
    except BadEntryError:
        pass
    return tuple(found), False


def _look_at_rows(store: ToStoreSpec, places: Places, source: SourceFacts) -> RowFacts:
    assert source.schema is not None
    count = 0
    problems: dict[str, None] = {}
    try:
        for rows in read_rows(source.spec, places, source.version, source.schema):
            count += rows.num_rows
            problems |= dict.fromkeys(value_problems(store, rows))
        keys = about_how_many_keys(source.spec, places, source.version, store.key)
        problems |= dict.fromkeys(lacking_rows(source.spec, places, source, count))
    except RowsNotReadError as exc:
        return RowFacts(count, problems=(str(exc),))
    return RowFacts(count, keys, tuple(problems))
