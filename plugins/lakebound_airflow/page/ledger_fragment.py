"""Offsets per partition as bars, and the newest batches as a table whose rows open: a piece of HTML, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from lakebound.control.recent_ledger import LandedBatch, Ranges, RecentLedger
from lakebound.ledger.intervals import Interval
from lakebound_airflow.page.coverage import CoverageRow

MOST_ROWS = 200
WIDTH, HEIGHT = 500, 14
_NARROWEST = 2.0
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
    lines = "".join(f"<li>{escape(line)}</li>" for line in problems)
    told = f'<ul class="problems">{lines}</ul>' if lines else ""
    if not rows and not ledger.batches:
        return f'{told}<p class="quiet">No application has told of its offsets yet.</p>'
    return told + _bars(rows) + _batches(ledger)


def bar(row: CoverageRow) -> str:
    """Return the bar of one partition: from the first offset that is known to be landed, or from 0, to Kafka's end."""
    known = [offset for interval in row.landed for offset in interval]
    known += [offset for offset in (row.next_offset, row.end_offset) if offset is not None]
    if not known:
        return ""
    first, last = (min(known) if row.landed else 0), max(known)
    scale = WIDTH / max(1, last - first)
    landed = row.landed or ((first, row.next_offset if row.next_offset is not None else first),)
    waiting = ((row.next_offset, row.end_offset),) if row.next_offset is not None and row.end_offset is not None else ()
    drawn = [
        _block(kind, max(first, start), end, first, scale)
        for kind, intervals in (("landed", landed), ("bad", row.bad), ("missing", row.missing), ("waiting", waiting))
        for start, end in intervals
        if start < end and end > first
    ]
    said = f"offsets {first:,} to {last:,}; missing: {_said(row.missing)}"
    return (
        f'<svg class="bar" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img">'
        f"<title>{escape(said)}</title>{''.join(drawn)}</svg>"
    )


def _block(kind: str, start: int, end: int, first: int, scale: float) -> str:
    width = max(_NARROWEST, (end - start) * scale)
    x = min((start - first) * scale, WIDTH - width)
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="0" width="{width:.1f}" height="{HEIGHT}">'
        f"<title>{kind}: {start:,} to {end - 1:,}</title></rect>"
    )


def _bars(rows: Sequence[CoverageRow]) -> str:
    key = "".join(f'<li class="{kind}">{escape(words)}</li>' for kind, words in _KEY)
    more = f"; {len(rows) - MOST_ROWS} more are not shown" if len(rows) > MOST_ROWS else ""
    # Those with holes first, then those that are behind.
    shown = sorted(rows, key=lambda row: (not row.missing, -(row.lag or 0), row.topic, row.partition))[:MOST_ROWS]
    lines = "".join(
        _line(
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
        "Next offset to land, and Kafka's end when the application last looked. The bars begin at the first offset that the "
        f"tables hold{more}."
    )
    heads = ("Topic", "#Partition", "#Next offset", "#End", "#Lag", "Missing", "Landed")
    return f'<ul class="key">{key}</ul>{_table("bars", caption, heads, lines)}'


def _batches(ledger: RecentLedger) -> str:
    if not ledger.batches:
        return '<p class="quiet">No batch has been noted yet; the tables have the ledger: lakebound ledger.</p>'
    caption = (
        f"The newest {len(ledger.batches)} batches, as the application noted them until {_moment(ledger.written_at)}. "
        "The tables have all: lakebound ledger."
    )
    heads = ("Landed", "Batch", "Lane", "#Read", "#Filtered", "#Quarantined", "#Milliseconds")
    lines = "".join(_batch(batch) for batch in reversed(ledger.batches))
    return f'<div class="batches">{_table("", caption, heads, lines)}</div>'


def _batch(batch: LandedBatch) -> str:
    facts = [("Epoch", str(batch.epoch)), *_range_facts(batch.ranges)]
    shown = sum(map(len, batch.ranges.values()))
    if shown < batch.partitions:
        facts.append(("And", f"{batch.partitions - shown} more partitions"))
    facts += [(table, f"{made.rows:,} rows, version {made.version}") for table, made in sorted(batch.tables.items())]
    facts += [("Quarantined", f"{times:,} × {reason}") for reason, times in _ordered(batch.reasons)]
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in facts)
    opened = (
        f'<details id="batch-{batch.epoch}-{batch.batch}-{batch.at * 1000:.0f}"><summary>{batch.batch}</summary>'
        f'<dl class="facts">{body}</dl></details>'
    )
    lane = escape(batch.lane or "–")
    counts = (batch.read, batch.filtered, batch.quarantined, round(batch.seconds * 1000))
    return _line(_moment(batch.at), opened, lane, *counts)


def _table(kind: str, caption: str, heads: Sequence[str], lines: str) -> str:
    """Return a table; the name of a column of numbers begins with ``#``."""
    cells = "".join(f'<th scope="col"{_kind(head.startswith("#"))}>{escape(head.removeprefix("#"))}</th>' for head in heads)
    head = f"<caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead>"
    return f'<table class="{kind}">{head}<tbody>{lines}</tbody></table>'


def _line(*cells: str | int | None) -> str:
    """Return a row of numbers and of HTML; a number that is not known is a dash."""
    made = (
        f"<td>{cell}</td>" if isinstance(cell, str) else f'<td class="number">{"–" if cell is None else f"{cell:,}"}</td>'
        for cell in cells
    )
    return f"<tr>{''.join(made)}</tr>"


def _kind(is_number: bool) -> str:
    return ' class="number"' if is_number else ""


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


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
