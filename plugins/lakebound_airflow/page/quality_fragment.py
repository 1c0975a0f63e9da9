"""Quarantine by reason, health of the tables and results of validation as a piece of HTML; every text is escaped.

What an expectation observed, and why it could not be judged, may hold values of records: both stay away from the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from lakebound.operations.maintenance.health_history import HealthReading, Trend
from lakebound_airflow.page.html_tables import line, moment, table, told
from lakebound_airflow.page.quality import LastResult, Quality, ReasonRow, reason_rows

MOST_RESULTS = 200
_NOT_COUNTED = "reason not counted"


def quality_fragment(quality: Quality) -> str:
    """Return the three tables; what the state knows nothing of is said in a line."""
    parts = (("Quarantine by reason", _quarantine), ("Files of the tables", _files), ("Validation", _validation))
    return told(quality.problems) + "".join(f"<h3>{title}</h3>{draw(quality)}" for title, draw in parts)


def _quarantine(quality: Quality) -> str:
    rows = reason_rows(quality.recent, quality.day)
    if not rows:
        return f'<p class="quiet">No record went to quarantine since {moment(quality.since)}.</p>'
    minutes = "no application reports on the last minutes"
    if quality.recent is not None:
        minutes = f"{quality.recent.quarantined:,} of {quality.recent.records:,} in the last {_minutes(quality)}"
    caption = (
        f"Records in quarantine: {quality.day.quarantined:,} of {quality.day.read:,} since {moment(quality.since)}; {minutes}. "
        "The records: lakebound quarantine."
    )
    return table(caption, ("Reason", "#Last minutes", "#Last day"), (_reason(row) for row in rows))


def _minutes(quality: Quality) -> str:
    minutes = round(quality.recent.over_seconds / 60) if quality.recent is not None else 0
    return "minute" if minutes <= 1 else f"{minutes} minutes"


def _reason(row: ReasonRow) -> str:
    return line(escape(row.reason or _NOT_COUNTED), row.recent, row.day)


def _files(quality: Quality) -> str:
    return health_table(quality.readings)


def health_table(readings: Sequence[tuple[HealthReading, Trend | None]]) -> str:
    """Return the readings of tables' health as a table."""
    if not readings:
        return '<p class="quiet">Nobody has looked at the tables yet: lakebound health, or maintenance.</p>'
    heads = (
        "Table",
        "#Score",
        "#Files",
        "#More in a day",
        "#Small",
        "#MiB",
        "#Metadata MiB",
        "#Log commits",
        "#Manifests",
        "Looked",
    )
    lines = (
        line(
            escape(one.table),
            round(one.score),
            one.files,
            None if change is None else change.files,
            one.small_files,
            one.size_bytes >> 20,
            one.metadata_bytes >> 20,
            one.log_tail_commits,
            one.manifests,
            moment(one.at_ms / 1000),
        )
        for one, change in readings
    )
    caption = (
        "Health as it was last read: with a score of 100 there is nothing to repair. Points are lost by small files, large "
        "metadata, commits since the last checkpoint of the log, and manifests. The reasons in words: lakebound health."
    )
    return table(caption, heads, lines)


def _validation(quality: Quality) -> str:
    return results_table(quality.results)


def results_table(results: Sequence[LastResult]) -> str:
    """Return how expectations last came out as a table."""
    if not results:
        return '<p class="quiet">No result is recorded.</p>'
    failed = sum(not last.result.passed for last in results)
    more = len(results) - MOST_RESULTS
    caption = f"How each expectation last came out, {failed:,} of {len(results):,} not as expected" + (
        f"; {more:,} are not shown." if more > 0 else "."
    )
    heads = ("Result", "Table", "Expectation", "#Rows", "#Not as expected", "Some of these, in Kafka", "Versions", "Validated")
    return table(caption, heads, (_result(last) for last in results[:MOST_RESULTS]))


def _result(last: LastResult) -> str:
    one, result = last.one, last.result
    kind, word = ("none", "held") if result.passed else (result.severity.value, "failed")
    if result.problem:
        word = "not evaluated"
    return line(
        f'<span class="badge {kind}">{word}</span>',
        escape(one.table),
        escape(result.label),
        result.checked,
        result.unexpected,
        escape(", ".join(result.samples) or "–"),
        escape(one.span or "–"),
        moment(one.at),
    )
