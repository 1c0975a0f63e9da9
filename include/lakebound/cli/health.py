"""``lakebound health``: how the files and the metadata of tables stand."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakebound.cli.output import Json, duration, number, print_json, print_rows, show
from lakebound.operations.maintenance.wording import count_words, size_words

if TYPE_CHECKING:
    from lakebound.operations.maintenance.assessment import TableHealth
    from lakebound.operations.maintenance.health_history import HealthReading, Trend
    from lakebound.settings import Settings
    from lakebound.spec.pipeline import PipelineSpec
    from lakebound.spec.table import TableSpec

HEALTHY_SCORE = 90
"""A table below is explained, even when nobody asked for it alone."""


@dataclass(frozen=True)
class _Row:
    """What was found of a table: its health, that it is not there, or why it cannot be read."""

    pipeline: str
    table: str
    health: TableHealth | None = None
    trend: Trend | None = None
    problem: str | None = None


def health(
    pipeline: Annotated[str | None, typer.Argument(help="Pipeline name. Default: all pipelines.")] = None,
    table: Annotated[str | None, typer.Option(help="One table of the pipeline: name or format:name. Default: all.")] = None,
    record: Annotated[bool, typer.Option("--record", help="Store this reading, so that later ones show a trend.")] = False,
    json: Json = False,
) -> None:
    """Show small files, metadata size and a health score per table. Only metadata is read.

    Exit code 1 if a table cannot be read.
    """
    from lakebound.settings import load_settings
    from lakebound.tables.declared import owned_pipeline, shown_pipelines

    if table is not None and pipeline is None:
        raise typer.BadParameter("--table needs the name of the pipeline that writes the table")
    settings = load_settings()
    problems: list[str] = []
    if pipeline is None:
        loaded = shown_pipelines(settings)
        specs, problems = list(loaded.specs.values()), list(loaded.problems)
    else:
        specs = [owned_pipeline(pipeline, settings)]
    rows = [row for spec in specs for row in _look(spec, table, settings, record)]
    if json:
        print_json({"tables": [_body(row) for row in rows], "problems": problems})
    else:
        _print(rows, explain_all=table is not None)
        for problem in problems:
            show(problem)
    raise typer.Exit(1 if any(row.problem for row in rows) else 0)


def _look(spec: PipelineSpec, wanted: str | None, settings: Settings, record: bool) -> list[_Row]:
    from lakebound.cli.tables import chosen_tables
    from lakebound.control.folder import ControlFolder
    from lakebound.operations.maintenance.health_history import read_health_history, reading_of, record_health

    control = ControlFolder(settings.home, spec.pipeline)
    history = read_health_history(control)
    rows = [_row(spec, table, settings, history) for table in chosen_tables(spec, wanted)]
    found = [reading_of(row.health) for row in rows if row.health is not None]
    if record and found:
        record_health(control, found)
    return rows


def _row(spec: PipelineSpec, table: TableSpec, settings: Settings, history: list[HealthReading]) -> _Row:
    """Return what is found of a table; one that cannot be read hides none of the others."""
    from lakebound.operations.maintenance.health_history import reading_of, trend
    from lakebound.operations.maintenance.reading import UnreadableTableError, read_table_facts
    from lakebound.operations.maintenance.score import assess
    from lakebound.tables.places import places_of

    try:
        facts = read_table_facts(table, places_of(settings, spec.warehouse), int(time.time() * 1000))
    except UnreadableTableError as exc:
        return _Row(spec.pipeline, table.id, problem=str(exc))
    if facts is None:
        return _Row(spec.pipeline, table.id)
    found = assess(facts, spec.maintenance)
    return _Row(spec.pipeline, table.id, found, trend(history, reading_of(found)))


def _body(row: _Row) -> dict[str, Any]:
    return {
        "pipeline": row.pipeline,
        "table": row.table,
        "exists": row.health is not None or row.problem is not None,
        "problem": row.problem,
        "health": row.health.model_dump(mode="json") if row.health else None,
        "trend": row.trend.model_dump(mode="json") if row.trend else None,
    }


def _print(rows: list[_Row], *, explain_all: bool) -> None:
    if not rows:
        show("no pipelines")
        return
    headers = ("PIPELINE", "TABLE", "SCORE", "FILES", "SMALL", "SIZE", "METADATA", "SNAPSHOTS", "READS*", "TREND")
    print_rows(headers, [_cells(row) for row in rows], right=("SCORE", "FILES", "SMALL", "SIZE", "SNAPSHOTS", "READS*"))
    for row in rows:
        if row.health is not None and (explain_all or row.health.score < HEALTHY_SCORE):
            _explain(row.health)
        if row.problem is not None:
            show(row.problem)
    show("* cost of a full scan, compared with the same rows in files of the target size")


def _cells(row: _Row) -> tuple[str, ...]:
    found = row.health
    if found is None:
        return (row.pipeline, row.table, "-", "-", "-", "-", "unreadable" if row.problem else "no table yet", "-", "-", "-")
    return (
        row.pipeline,
        row.table,
        f"{found.score:.0f}",
        number(found.files),
        number(found.small_files),
        size_words(found.size_bytes),
        _metadata(found),
        number(found.metadata.snapshots),
        f"{found.read_amplification:,.1f}x",
        _trend(row.trend, found.at_ms),
    )


def _metadata(found: TableHealth) -> str:
    from lakebound.operations.maintenance.planning_rules import planning_of

    return f"{size_words(found.metadata.metadata_bytes)}, {planning_of(found.table).metadata_parts(found.metadata)}"


def _trend(found: Trend | None, now_ms: int) -> str:
    if found is None:
        return "-"
    return f"{found.files:+,} files, {found.score:+.0f} in {duration((now_ms - found.since_ms) / 1000)}"


def _explain(found: TableHealth) -> None:
    show(f"{found.table}: score {found.score:.0f}" + ("" if found.deductions else ", no deductions"))
    for deduction in found.deductions:
        show(f"  -{deduction.points:<4g} {deduction.sentence}")
    for note in found.notes:
        show(f"  note: {note}")
    sizes = [
        f"{number(one.files)} of {f'at most {size_words(one.up_to_bytes)}' if one.up_to_bytes else 'more'}"
        for one in found.size_histogram
        if one.files
    ]
    if sizes:
        show(f"  file sizes: {', '.join(sizes)}")
    for part in found.worst_partitions:
        show(
            f"  {part.name or 'all'}: {count_words(part.files, 'file')} of {size_words(part.size_bytes)} together, "
            f"{number(part.removable_files)} fewer after compaction"
        )
    show("")
