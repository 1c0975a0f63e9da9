"""A day's report in words: the page, as Markdown, and the text of the message. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from lakebound.alerts.wording import Links
from lakebound.control.disks import in_words
from lakebound.report.model import DayReport, FreshnessDay, IncidentOfDay, PipelineDay, TableDay

_MOST_IN_MESSAGE = 30
_MOST_INCIDENTS = 50

_NOTES = """\
Days are in UTC. Rows landed by a replay or a release are not counted. Freshness is the age of records when they landed; each
record counts as old as the oldest one of its batch. The objective applies to periods of five minutes; here it is compared with
the whole day. Files and bytes are from the day's last look at the table's health. Seconds in batches are elapsed time. CPU
seconds are those of the applications on their machines, including Spark's JVM and their starts. Executors on other machines,
maintenance and validation are not included.
"""


def markdown_of(report: DayReport, links: Links) -> str:
    """Return the page.

    Args:
        report: The day.
        links: Where the runbooks are.
    """
    parts = [f"# Lakebound on {report.day.isoformat()}", _headline(report)]
    if report.pipelines:
        parts.append(_overview(report.pipelines))
    fresh = [one for one in report.pipelines if one.freshness.p99_seconds is not None]
    if fresh:
        parts += ["## Freshness", _freshness(fresh)]
    tables = [(one.pipeline, table) for one in report.pipelines for table in one.tables]
    if tables:
        parts += ["## Tables", _tables(tables)]
    incidents = [(one.pipeline, incident) for one in report.pipelines for incident in one.incidents]
    if incidents:
        parts += ["## Incidents", _incidents(incidents, links)]
    problems = [f"- {_cell(one.pipeline)}: {_cell(problem)}" for one in report.pipelines for problem in one.problems]
    if problems:
        parts += ["## What could not be read", "\n".join(problems)]
    return "\n\n".join([*parts, _NOTES])


def message_text_of(report: DayReport) -> str:
    """Return the text of the message: a line about all, and a line per pipeline. Of incidents it has the number alone."""
    shown = report.pipelines[:_MOST_IN_MESSAGE]
    left = len(report.pipelines) - len(shown)
    more = [f"and {left} more: lakebound report --day {report.day.isoformat()}"] if left else []
    return "\n".join([f"{report.day.isoformat()}: {_headline(report)}", *map(_line, shown), *more])


def totals_of(report: DayReport) -> dict[str, int]:
    """Return the sums over all pipelines, by name."""
    return {
        "pipelines": len(report.pipelines),
        "records_read": sum(one.read for one in report.pipelines),
        "rows": sum(one.rows for one in report.pipelines),
        "bad_records": sum(one.quarantined for one in report.pipelines),
        "incidents": sum(len(one.incidents) for one in report.pipelines),
        "cpu_seconds": round(sum(one.cpu_seconds for one in report.pipelines)),
        "objectives_missed": sum(one.freshness.is_met is False for one in report.pipelines),
    }


def _headline(report: DayReport) -> str:
    made = "" if report.is_over else f" So far, until {_clock(report.made_at)}."
    if not report.has_figures:
        return f"No pipeline ran.{made}"
    totals = totals_of(report)
    silent = sum(not one.has_figures for one in report.pipelines)
    said = [
        f"{_count(totals['records_read'], 'record')} read",
        f"{_count(totals['rows'], 'row')} landed",
        _count(totals["bad_records"], "bad record"),
        _count(totals["incidents"], "incident"),
        f"{_count(totals['objectives_missed'], 'freshness objective')} missed",
        *([f"{_count(silent, 'pipeline')} without figures"] if silent else []),
    ]
    return f"{_count(totals['pipelines'], 'pipeline')}: {', '.join(said)}.{made}"


def _line(one: PipelineDay) -> str:
    if not one.has_figures:
        incidents = [_count(len(one.incidents), "incident")] if one.incidents else []
        return f"{one.pipeline}: {', '.join(['no figures for this day', *incidents])}"
    rows = f"{_count(one.rows, 'row')} landed" + (f" in {len(one.tables)} tables" if len(one.tables) > 1 else "")
    said = [f"{_count(one.read, 'record')} read", rows, f"bad {one.quarantined:,} ({_share(one)})"]
    fresh = one.freshness
    if fresh.p99_seconds is not None:
        said.append(f"p50 {_seconds(fresh.p50_seconds)}, p99 {_seconds(fresh.p99_seconds)}{_against(fresh)}")
    if one.cpu_seconds:
        used, each = _cost(one)
        said.append(f"CPU {used} ({each} per million records)")
    if one.incidents:
        said.append(_count(len(one.incidents), "incident"))
    return f"{one.pipeline}: {', '.join(said)}"


def _overview(pipelines: Sequence[PipelineDay]) -> str:
    heads = ("pipeline", "read", "filtered", "bad", "share", "waits", "in batches", "CPU", "per million", "last proof")
    rows = [(_cell(one.pipeline), *_counts(one), _proof(one)) for one in pipelines]
    return _table(heads, rows, right=range(1, 9))


def _counts(one: PipelineDay) -> tuple[str, ...]:
    if not one.has_figures:
        return ("no figures for this day", *("–",) * 7)
    waits = "–" if one.lag_records is None else f"{one.lag_records:,}"
    counts = (f"{one.read:,}", f"{one.filtered:,}", f"{one.quarantined:,}", _share(one), waits)
    return *counts, f"{one.busy_seconds:,.0f} s", *_cost(one)


def _cost(one: PipelineDay) -> tuple[str, str]:
    if not one.cpu_seconds:
        return "–", "–"
    each = one.cpu_seconds_per_million
    return f"{one.cpu_seconds:,.0f} s", "–" if each is None else f"{each:,.1f} s"


def _freshness(pipelines: Sequence[PipelineDay]) -> str:
    rows = []
    for one in pipelines:
        fresh = one.freshness
        objective = "–" if fresh.objective_seconds is None else _seconds(fresh.objective_seconds)
        verdict = {True: f"{objective}, met", False: f"**{objective}, missed**", None: objective}[fresh.is_met]
        worst = "–" if fresh.worst_hour_at is None else f"{_clock(fresh.worst_hour_at)}"
        p99_of_worst = _seconds(fresh.worst_hour_p99_seconds)
        rows.append(
            (_cell(one.pipeline), _seconds(fresh.p50_seconds), _seconds(fresh.p99_seconds), verdict, worst, p99_of_worst)
        )
    return _table(("pipeline", "p50", "p99", "objective of the p99", "worst hour (UTC)", "its p99"), rows, right=(1, 2, 5))


def _against(freshness: FreshnessDay) -> str:
    if freshness.objective_seconds is None:
        return ""
    return f" of {_seconds(freshness.objective_seconds)}" + ("" if freshness.is_met else ": missed")


def _proof(one: PipelineDay) -> str:
    if one.proof is None:
        return "–"
    when = datetime.fromtimestamp(one.proof.at, UTC).strftime("%m-%d %H:%M")
    well = "nothing landed yet" if one.proof.is_empty else "complete"
    said = well if one.proof.ok else f"**missing {one.proof.missing:,}, duplicated {one.proof.duplicated:,}**"
    return f"{said} ({when})"


def _tables(tables: Sequence[tuple[str, TableDay]]) -> str:
    rows = [
        (
            _cell(pipeline),
            f"`{table.table}`",
            f"{table.rows:,}",
            f"{table.commits:,}",
            "–" if table.files is None else f"{table.files:,}{_change(table.files_added)}",
            "–" if table.size_bytes is None else in_words(table.size_bytes) + _bytes_change(table.bytes_added),
        )
        for pipeline, table in tables
    ]
    return _table(("pipeline", "table", "rows", "commits", "files", "bytes"), rows, right=range(2, 6))


def _incidents(incidents: Sequence[tuple[str, IncidentOfDay]], links: Links) -> str:
    rows = [
        (
            _clock(incident.at),
            _cell(pipeline),
            _cell(incident.kind),
            _cell(incident.what),
            _cell(incident.outcome) or "–",
            f"[{incident.runbook}]({links.runbook(incident.runbook)})" if incident.runbook else "–",
        )
        for pipeline, incident in incidents[:_MOST_INCIDENTS]
    ]
    text = _table(("at (UTC)", "pipeline", "kind", "what", "outcome", "runbook"), rows)
    left = len(incidents) - len(rows)
    return f"{text}\n\nand {left} more: `lakebound incidents`" if left else text


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    marks = ["---:" if place in right else "---" for place in range(len(heads))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, marks, *rows))


def _cell(text: str) -> str:
    """Return text that breaks no table and is no markup, whoever wrote it."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{character}" if character in "\\|`*_[]" else character for character in plain)


def _share(one: PipelineDay) -> str:
    return "–" if one.bad_share is None else f"{one.bad_share:.2%}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def _change(number: int | None) -> str:
    return "" if number is None else f" ({number:+,})"


def _bytes_change(size_bytes: int | None) -> str:
    return "" if size_bytes is None else f" ({'+' if size_bytes >= 0 else ''}{in_words(size_bytes)})"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M")


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.3g} s"
