"""``lakebound ledger`` and ``lakebound tables``: what commits say, what tables hold, where they lie and how to open them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.output import Json, moment, number, print_json, print_rows, show
from lakebound.cli.ranges import ranges
from lakebound.cli.sources import print_sources
from lakebound.errors import LakeboundError
from lakebound.first_line import first_line

if TYPE_CHECKING:
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec
    from lakebound.spec.table import TableSpec
    from lakebound.tables.places import Places
    from lakebound.tables.table import CommittedEntry


class NoSuchTableError(LakeboundError):
    """The pipeline has no such table."""

    def __init__(self, pipeline: str, table: str, known: list[str]) -> None:
        super().__init__(f"pipeline {pipeline!r} has no table {table!r}; its tables are: {', '.join(known)}")


class UndeclaredTableError(LakeboundError):
    """No pipeline has such a table."""

    def __init__(self, table: str, known: list[str]) -> None:
        super().__init__(f"no pipeline has a table {table!r}; the pipelines' tables are: {', '.join(known) or 'none'}")


def ledger(
    pipeline: Annotated[str, typer.Argument(help="Pipeline name.")],
    table: Annotated[str | None, typer.Option(help="One table, topic or store: name or format:name. Default: all.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries per table, newest first.")] = 20,
    by_source: Annotated[
        bool, typer.Option("--by-source", help="Show which version of the code (YAML and transform) landed which offsets.")
    ] = False,
    json: Json = False,
) -> None:
    """Show the ledger entry of each commit: the offsets that it landed, newest first."""
    from lakebound.landing.target_kind import opened
    from lakebound.operations.redo.made_by import made_by
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline
    from lakebound.tables.places import places_of

    settings = load_settings()
    spec = owned_pipeline(pipeline, settings)
    places = places_of(settings, spec.warehouse)
    others = [target for _, target in opened(spec) if table in (None, target.spec.id, target.spec.id.partition(":")[2])]
    chosen = chosen_tables(spec, table) if table is None or not others else []
    found = {wanted.id: list(_entries(wanted, places, limit)) for wanted in chosen}
    found |= {one.spec.id: list(islice(one.entries(), limit)) for one in others}
    if by_source:
        walks = {wanted.id: _entries(wanted, places, None) for wanted in chosen} | {
            one.spec.id: one.entries() for one in others
        }
        newest = {name: entries[0].entry if entries else None for name, entries in found.items()}
        print_sources({name: made_by(one, walks[name]) if one else None for name, one in newest.items()}, json=json)
        return
    if json:
        print_json([_entry_body(name, committed) for name, entries in found.items() for committed in entries])
        return
    for name, entries in found.items():
        show(f"{name}: " + (f"{len(entries)} newest entries" if entries else "no table yet"))
        if entries:
            print_entries(entries)


def tables(
    name: Annotated[str | None, typer.Argument(help="One table: name, format:name or format.name. Default: all.")] = None,
    json: Json = False,
) -> None:
    """Show the tables of all pipelines: rows, files, version, newest entry and folder. With a name, show how to open it."""
    from lakebound.settings import load_settings
    from lakebound.tables.declared import shown_pipelines

    settings = load_settings()
    loaded = shown_pipelines(settings)
    every = [(spec, found) for spec in loaded.specs.values() for found in chosen_tables(spec, None)]
    wanted = [(spec, found) for spec, found in every if name is None or _is_called(found, name)]
    if name is not None and not wanted:
        raise UndeclaredTableError(name, [found.id for _, found in every])
    rows = [_table_row(spec, found, settings) for spec, found in wanted]
    if json:
        print_json({"tables": rows, "problems": loaded.problems})
        return
    if name is not None:
        for row in rows:
            _print_access(row)
        return
    headers = ("PIPELINE", "TABLE", "ROWS", "FILES", "VERSION", "NEWEST ENTRY", "EPOCH", "AT (UTC)", "FOLDER")
    print_rows(headers, [_table_cells(row) for row in rows], right=("ROWS", "FILES", "EPOCH"))
    for line in [*(f"{row['table']}: {row['problem']}" for row in rows if row["problem"]), *loaded.problems]:
        show(line)
    if rows:
        show("`lakebound tables NAME` shows how to open a table with Spark SQL, pandas, Polars, DuckDB and PyIceberg")


def chosen_tables(spec: PipelineSpec, wanted: str | None) -> list[TableSpec]:
    """Return a pipeline's tables, its quarantine last, or only those of a name.

    Raises:
        NoSuchTableError: It has none of that name.
    """
    known = [*spec.tables, spec.quarantine_table]
    if wanted is None:
        return known
    found = [table for table in known if wanted in (table.id, table.name)]
    if not found:
        raise NoSuchTableError(spec.pipeline, wanted, [table.id for table in known])
    return found


def _entries(spec: TableSpec, places: Places, limit: int | None) -> Iterator[CommittedEntry]:
    from lakebound.tables.table import open_table

    if (table := open_table(spec, places)).exists():
        yield from islice(table.entries(), limit)


def _entry_body(table: str, committed: CommittedEntry) -> dict[str, Any]:
    entry = committed.entry.model_dump(mode="json")
    return {"table": table, "version": committed.version, "committed_at_ms": committed.committed_at_ms, "entry": entry}


def print_entries(entries: list[CommittedEntry]) -> None:
    """Print the entries of one table, the newest first, and which schemas the newest names."""
    headers: tuple[str, ...] = (
        "AT (UTC)",
        "VERSION",
        "KIND",
        "EPOCH",
        "BATCH",
        "LANE",
        "READ",
        "LANDED",
        "FILTERED",
        "BAD",
        "ROWS",
        "RANGE",
    )
    rows: list[tuple[str, ...]] = []
    for committed in entries:
        entry = committed.entry
        counts = [number(count) for count in (entry.read, entry.landed, entry.filtered, entry.quarantined, entry.rows)]
        rows.append(
            (
                moment(committed.committed_at_ms),
                committed.version,
                entry.kind,
                str(entry.epoch),
                number(entry.batch),
                entry.lane or "-",
                *counts,
                ranges(entry.range),
            )
        )
    read = [", ".join(f"{name} {one}" for name, one in sorted(found.entry.references.items())) or "-" for found in entries]
    if any(found.entry.references for found in entries):
        headers, rows = (*headers, "REFERENCE"), [(*row, versions) for row, versions in zip(rows, read, strict=True)]
    print_rows(headers, rows, right=("EPOCH", "BATCH", "READ", "LANDED", "FILTERED", "BAD", "ROWS"))
    for registry, named in sorted(entries[0].entry.schemas.items()):
        known = ", ".join(f"{schema} ({fingerprint})" for schema, fingerprint in named.items())
        show(f"schemas of the registry {registry} that the newest entry names, by id and fingerprint: {known or 'none'}")


def _table_row(spec: PipelineSpec, wanted: TableSpec, settings: Settings) -> dict[str, Any]:
    """Return what is known of a table; a table that cannot be read hides none of the others."""
    from lakebound.tables.access import access_of
    from lakebound.tables.contents import contents_of
    from lakebound.tables.format_rules import rules_of
    from lakebound.tables.places import places_of
    from lakebound.tables.table import open_table

    row: dict[str, Any] = dict.fromkeys(("rows", "files", "size_bytes", "version", "newest_entry", "problem"))
    row = {"pipeline": spec.pipeline, "table": wanted.id, "format": wanted.format, "name": wanted.name, "exists": False, **row}
    places = places_of(settings, spec.warehouse)
    row |= asdict(access_of(wanted, places))
    try:
        if not (table := open_table(wanted, places)).exists():
            return row
        row["exists"] = True
        size = contents_of(wanted, places).size()
        row |= {"rows": size.rows, "files": size.files, "size_bytes": size.size_bytes}
        row["version"] = table.read_ledger().version
        newest = next(table.entries(), None)
        if newest is not None:
            entry = newest.entry
            row["newest_entry"] = {"kind": entry.kind, "epoch": entry.epoch, "committed_at_ms": newest.committed_at_ms}
        row["path"] = str(rules_of(wanted.format).table_folder(table.layout().folder))
    except Exception as exc:
        row["problem"] = first_line(exc)
    return row


def _table_cells(row: dict[str, Any]) -> tuple[str, ...]:
    newest = row["newest_entry"] or {}
    return (
        row["pipeline"],
        row["table"],
        number(row["rows"]),
        number(row["files"]),
        row["version"] or ("-" if row["exists"] else "no table yet"),
        newest.get("kind", "-"),
        str(newest.get("epoch", "-")),
        moment(newest["committed_at_ms"]) if newest else "-",
        row["path"],
    )


def _is_called(table: TableSpec, name: str) -> bool:
    return name in (table.id, table.name, f"{table.format}.{table.name}")


def _print_access(row: dict[str, Any]) -> None:
    """Print where one table lies, and the lines that open it."""
    held = f"{number(row['rows'])} rows in {number(row['files'])} files" if row["exists"] else "no table yet"
    show(f"{row['table']}: {row['problem'] or held}")
    show(f"  pipeline: {row['pipeline']}")
    show(f"  format:   {row['format']}")
    show(f"  folder:   {row['path']}")
    if row["catalog"]:
        show(f"  catalog:  {row['catalog']['name']}, {row['catalog']['uri']}")
    for tool, lines in row["snippets"].items():
        show(f"\n  {tool}:\n")
        for line in lines.splitlines():
            show(f"    {line}")
    show("")
