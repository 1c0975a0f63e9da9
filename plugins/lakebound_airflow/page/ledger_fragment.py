"""Offsets per partition as bars, and the newest batches as a table whose rows open: a piece of HTML, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from lakebound.control.recent_ledger import LandedBatch, Ranges, RecentLedger
from lakebound.ledger.intervals import Interval
from lakebound_airflow.page.coverage import CoverageRow
from lakebound_airflow.page.html_tables import line, moment, table, told

MOST_ROWS = 200
WIDTH, HEIGHT = 500, 14
_NARROWEST = 2.0
_BANDS = {"landed": (0, HEIGHT), "bad": (8, 6), "missing": (5, 4), "waiting": (3, 8)}
"""Top and height of each kind: who does not tell the colours apart sees the shapes."""
_KEY = (
    ("landed", "landed"),
    ("bad", "read by batches with records for the quarantine (of the newest batches)"),
    ("missing", "missing in a table"),
    ("waiting", "waits in Kafka"),
)


def ledger_fragment(rows: Sequence[CoverageRow], ledger: RecentLedger, problems: Iterable[str] = ()) -> str:
    """Return the bars and the table.

    Args:
        rows: A partition each.
        ledger: What the application wrote down.
        problems: What could not be read.
    """
    unread = told(problems)
    if not rows and not ledger.batches:
        return f'{unread}<p class="quiet">No application has reported its offsets yet.</p>'
    return unread + _bars(rows, ledger.written_at) + _batches(ledger)


def bar(row: CoverageRow) -> str:
    """Return the bar of one partition: from the first offset of which something is known to Kafka's end."""
    known = [offset for interval in row.landed for offset in interval]
    known += [offset for offset in (row.next_offset, row.end_offset) if offset is not None]
    if not known:
        return ""
    first, last = min(known), max(known)
    whole = max(1, last - first)
    waiting = ((row.next_offset, row.end_offset),) if row.next_offset is not None and row.end_offset is not None else ()
    drawn = [
        _block(kind, max(first, start) - first, min(last, end) - first, first, whole)
        for kind, intervals in (("landed", row.landed), ("bad", row.bad), ("missing", row.missing), ("waiting", waiting))
        for start, end in intervals
        if start < end and first < end and start < last
    ]
    said = (
        f"offsets {first:,} to {last:,}; landed: {_said(row.landed)}; missing: {_said(row.missing)}; "
        f"read by batches with records for the quarantine: {_said(row.bad)}"
    )
    return (
        f'<svg class="bar" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img">'
        f"<title>{escape(said)}</title>{''.join(drawn)}</svg>"
    )


def _block(kind: str, start: int, end: int, first: int, whole: int) -> str:
    width = max(_NARROWEST, (end - start) * WIDTH / whole)
    x = min(start * WIDTH / whole, WIDTH - width)
    y, height = _BANDS[kind]
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}">'
        f"<title>{kind}: {first + start:,} to {first + end - 1:,}</title></rect>"
    )


def _bars(rows: Sequence[CoverageRow], noted_at: float) -> str:
    noted = moment(noted_at) if noted_at else "the application started; it will record the range soon"
    key = "".join(f'<li class="{kind}">{escape(words)}</li>' for kind, words in _KEY)
    more = f"; {len(rows) - MOST_ROWS} more are not shown" if len(rows) > MOST_ROWS else ""
    # Those with holes first, then those that are behind.
    shown = sorted(rows, key=lambda row: (not row.missing, -(row.lag or 0), row.topic, row.partition))[:MOST_ROWS]
    lines = (
        line(
            escape(row.topic),
            row.partition,
            row.next_offset,
            row.end_offset,
            row.lag,
            escape(_said(row.missing)),
            bar(row),
        )
        for row in shown
    )
    caption = (
        "Next offset to land, and Kafka's end when the application last looked. A bar begins at the first offset that the "
        f"tables are known to hold; blank parts were read after {noted}{more}."
    )
    heads = ("Topic", "#Partition", "#Next offset", "#End", "#Lag", "Missing", "Landed")
    return f'<ul class="key">{key}</ul>{table(caption, heads, lines, "bars")}'


def _batches(ledger: RecentLedger) -> str:
    if not ledger.batches:
        return '<p class="quiet">No batch has been noted yet; the tables have the ledger: lakebound ledger.</p>'
    caption = (
        f"The newest {len(ledger.batches)} batches, as the application noted them until {moment(ledger.written_at)}. "
        "The tables have all: lakebound ledger."
    )
    heads = ("Landed", "Batch", "Lane", "#Read", "#Filtered", "#Quarantined", "#Milliseconds")
    lines = (_batch(batch) for batch in reversed(ledger.batches))
    return f'<div class="batches">{table(caption, heads, lines)}</div>'


def _batch(batch: LandedBatch) -> str:
    facts = [("Epoch", str(batch.epoch)), *_range_facts(batch.ranges)]
    shown = sum(map(len, batch.ranges.values()))
    if shown < batch.partitions:
        facts.append(("And", f"{batch.partitions - shown} more partitions"))
    facts += [(name, f"{made.rows:,} rows, version {made.version}") for name, made in sorted(batch.tables.items())]
    facts += [("Quarantined", f"{times:,} × {reason}") for reason, times in _ordered(batch.reasons)]
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in facts)
    opened = (
        f'<details id="batch-{batch.epoch}-{batch.batch}-{batch.at * 1000:.0f}"><summary>Batch {batch.batch}</summary>'
        f'<dl class="facts">{body}</dl></details>'
    )
    lane = escape(batch.lane or "–")
    counts = (batch.read, batch.filtered, batch.quarantined, round(batch.seconds * 1000))
    return line(moment(batch.at), opened, lane, *counts)


def _range_facts(ranges: Ranges) -> list[tuple[str, str]]:
    return [
        (f"{topic}, partition {partition}", _said(intervals))
        for topic, partitions in sorted(ranges.items())
        for partition, intervals in sorted(partitions.items())
    ]


def _ordered(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))


def _said(intervals: Sequence[Interval]) -> str:
    """Return the offsets in words, first and last ones inclusive."""
    words = [f"{start:,} to {end - 1:,}" for start, end in intervals if start < end]
    return ", ".join(words[-5:]) + (f" and {len(words) - 5} more" if len(words) > 5 else "") if words else "–"
