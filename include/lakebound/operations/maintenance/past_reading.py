"""What must not be taken from real tables, who reads them, and what earlier runs did; and the record of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pydantic import ValidationError

from lakebound.control.folder import ControlFolder, change_text, read_text
from lakebound.operations.maintenance.history import PastRun, TablePast
from lakebound.operations.maintenance.steps import (
    Compact,
    ExpireSnapshots,
    MaintenanceStep,
    RemoveOrphans,
    RunReport,
    StepReport,
    Vacuum,
)
from lakebound.spec.maintenance import ReaderSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.format_rules import rules_of
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places

MAX_RECORD_BYTES = 8 * 1024 * 1024
"""Of the record of runs: half of it stays when it is full, weeks at a run each half hour."""

_MAX_IDS = 100
_PASTS: PerFormat[Callable[[TableSpec, Places, Sequence[ReaderSpec]], TablePast | None]] = PerFormat(
    "lakebound.operations.maintenance", "past:read_past"
)


def read_past(spec: TableSpec, places: Places, readers: Iterable[ReaderSpec]) -> TablePast | None:
    """Return the versions of a table and who stands on which; None where there is no such table.

    What cannot be read is among its problems, and then nothing may be taken away.

    Args:
        spec: The table.
        places: Where it is; they may be read-only.
        readers: Those of all tables.

    Raises:
        FileNotFoundError: Commits removed the metadata under this, again and again.
    """
    if not rules_of(spec.format).may_exist(places):
        return None
    own = [reader for reader in readers if reader.table in (spec.id, spec.name)]
    return _PASTS.of(spec.format)(spec, places, own)


def read_runs(control: ControlFolder) -> list[RunReport]:
    """Return the reports that are kept, oldest first; an incomplete last line is skipped."""
    return [report for report in map(_report, _lines(control)) if report is not None]


def read_run(control: ControlFolder, run_id: str) -> RunReport | None:
    """Return the report of one run; None where it left none."""
    return next((run for run in reversed(read_runs(control)) if run.run_id == run_id), None)


def record_run(control: ControlFolder, report: RunReport, *, max_bytes: int = MAX_RECORD_BYTES) -> None:
    """Add a report to the record. Two writers at once lose nothing.

    Where the record is full, its older half goes, but for the last look at all files of each table: what is done once a week
    would else be done each time that it is forgotten.

    Args:
        control: State folder of the pipeline.
        report: What the run that has just ended did to each table.
        max_bytes: Size of the record in bytes above which its older half goes.
    """

    def decide(text: str | None) -> str:
        lines = [*(text or "").splitlines(), _shortened(report).model_dump_json()]
        if sum(map(len, lines)) > max_bytes:
            lines = _newer_half(lines, max_bytes // 2)
        return "".join(f"{line}\n" for line in lines)

    change_text(control.maintenance_history, decide, durable=True)


def past_run(table: str, runs: Iterable[RunReport]) -> PastRun:
    """Return what reports, oldest first, say of one table. Pure."""
    compacted: dict[str, int] = {}
    fruitless: dict[str, int] = {}
    ordered: dict[str, int] = {}
    times: dict[str, int] = {}
    for run in runs:
        for report in run.steps:
            if report.step.table != table or report.outcome == "skipped":
                continue
            if isinstance(report.step, Compact):
                name = "/".join(f"{field}={value}" for field, value in report.step.partition.items())
                compacted[name] = run.ended_at_ms
                fruitless[name] = 0 if report.outcome == "done" else fruitless.get(name, 0) + 1
                if report.outcome == "done" and report.step.order_by:
                    ordered[name] = run.ended_at_ms
            elif _has_looked(report):
                times |= dict.fromkeys(_kinds(report.step), run.ended_at_ms)
    return PastRun(
        table=table,
        compacted_at_ms=compacted,
        fruitless=fruitless,
        ordered_at_ms=ordered,
        vacuumed_at_ms=times.get("vacuum"),
        vacuumed_full_at_ms=times.get("vacuum_full"),
        orphans_at_ms=times.get("orphans"),
    )


def _has_looked(report: StepReport) -> bool:
    return report.outcome in ("done", "nothing")


def _kinds(step: MaintenanceStep) -> tuple[str, ...]:
    if isinstance(step, Vacuum):
        return ("vacuum", "vacuum_full") if step.mode == "full" else ("vacuum",)
    return ("orphans",) if isinstance(step, RemoveOrphans) else ()


def _lines(control: ControlFolder) -> list[str]:
    return (read_text(control.maintenance_history) or "").splitlines()


def _report(line: str) -> RunReport | None:
    try:
        return RunReport.model_validate_json(line)
    except ValidationError:
        return None


def _shortened(report: RunReport) -> RunReport:
    """Return the report with a bounded number of snapshot ids: a run may expire tens of thousands."""

    def shorter(one: StepReport) -> StepReport:
        if not isinstance(one.step, ExpireSnapshots):
            return one
        return one.model_copy(update={"step": one.step.model_copy(update={"snapshot_ids": one.step.snapshot_ids[:_MAX_IDS]})})

    return report.model_copy(update={"steps": tuple(shorter(one) for one in report.steps)})


def _newer_half(lines: Sequence[str], bytes_kept: int) -> list[str]:
    last: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines):
        report = _report(line)
        for step in report.steps if report is not None else ():
            if _has_looked(step):
                last |= dict.fromkeys(((step.step.table, kind) for kind in _kinds(step.step)), number)
    kept, free = {len(lines) - 1, *last.values()}, bytes_kept
    for number in range(len(lines) - 1, -1, -1):
        free -= len(lines[number])
        if free < 0:
            break
        kept.add(number)
    return [lines[number] for number in sorted(kept)]
