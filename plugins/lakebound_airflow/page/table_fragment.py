"""The page of one table as a piece of HTML: its past, maintenance, files and validation; every text is escaped."""

from __future__ import annotations

from html import escape

from lakebound.control.table_history import RewindTarget, TableHistory
from lakebound.operations.maintenance.run_times import PastStep
from lakebound_airflow.page.html_tables import exact_moment, line, moment, table, told
from lakebound_airflow.page.quality_fragment import health_table, results_table
from lakebound_airflow.page.table_view import TableView
from lakebound_airflow.page.time_line import duration, grain_words, said, time_line

_KEY = (
    ("usual", "landed or maintained"),
    ("event", "anything else: opened, replayed, released, by others"),
    ("reset", "a rewind"),
)


def table_fragment(view: TableView, now: float) -> str:
    """Return the page's content.

    Args:
        view: What the state knows.
        now: Epoch seconds.
    """
    parts = (
        ("history", "History and rewind targets", _history(view, now)),
        ("steps", "Maintenance", _steps(view)),
        ("files", "Files", health_table(() if view.reading is None else (view.reading,))),
        ("results", "Validation", results_table(view.results)),
    )
    sections = "".join(
        f'<section aria-labelledby="{name}-head"><h2 id="{name}-head">{title}</h2>{body}</section>'
        for name, title, body in parts
    )
    return told(view.problems) + sections


def _history(view: TableView, now: float) -> str:
    history = view.history
    if history is None:
        return (
            '<p class="quiet">Maintenance has not read this table\'s history yet, or is switched off. '
            "<code>lakebound rewind --plan</code> reads the table directly.</p>"
        )
    targets = [one for one in history.targets if one.until is None or one.until > now]
    key = "".join(f'<li class="{kind}">{escape(words)}</li>' for kind, words in _KEY)
    return (
        f"<p>{escape(_sentence(history, targets, now))}</p>{told(history.problems)}"
        f'<ul class="key">{key}</ul>{time_line(targets, history.grains, now)}{_how(view)}{_targets(history, targets, now)}'
    )


def _sentence(history: TableHistory, targets: list[RewindTarget], now: float) -> str:
    kept = "; ".join(map(grain_words, history.grains))
    back = f" A rewind can go back to {moment(targets[0].at)}, {duration(now - targets[0].at)} ago." if targets else ""
    seen = f"Seen by maintenance {duration(now - history.looked_at)} ago, when it had {history.versions:,} versions."
    return f"Kept: {kept}.{back} {seen}"


def _how(view: TableView) -> str:
    if view.is_quarantine:
        return "<p>The quarantine can only be rewound together with the tables of its pipeline.</p>"
    command = f"lakebound rewind {view.pipeline} --to TIME --table {view.table}"
    return (
        f"<p>To see a plan (nothing is written): <code>{escape(command)}</code>. For a given time, the version that was "
        "current at that time is restored. Without <code>--table</code>, all tables of the pipeline are rewound.</p>"
    )


def _targets(history: TableHistory, targets: list[RewindTarget], now: float) -> str:
    left = history.versions - len(targets)
    more = f"; {left:,} more are not listed" if left > 0 else ""
    caption = f"Versions that a rewind can go back to, newest first{more}. Each is kept at least until the time that is said."
    lines = (_target(one, now) for one in reversed(targets))
    return f'<div class="targets">{table(caption, ("TIME", "Version", "What", "Kept until", "That is in"), lines)}</div>'


def _target(one: RewindTarget, now: float) -> str:
    if one.until is None:
        until, left = "it is current, or a reader needs it", "–"
    else:
        until, left = moment(one.until), duration(one.until - now)
    return line(f"<code>{exact_moment(one.at)}</code>", escape(one.version), escape(said(one.kind)), escape(until), left)


def _steps(view: TableView) -> str:
    if not view.steps:
        return '<p class="quiet">No run of maintenance is recorded for this table.</p>'
    caption = "What maintenance did to this table, newest first. Partitions and errors: lakebound maintain, and the task's log."
    heads = ("Run ended", "Step", "Outcome", "#Seconds", "#Files before", "#After", "#MiB rewritten", "#MiB removed")
    return f'<div class="steps">{table(caption, heads, map(_step, view.steps))}</div>'


def _step(one: PastStep) -> str:
    kinds = {"done": "none", "nothing": "stopped", "lost": "waits", "failed": "critical"}
    return line(
        moment(one.at),
        escape(one.kind.replace("_", " ")),
        f'<span class="badge {kinds.get(one.outcome, "stopped")}">{escape(one.outcome)}</span>',
        round(one.seconds),
        one.files_before,
        one.files_after,
        one.bytes_rewritten >> 20,
        one.bytes_removed >> 20,
    )
