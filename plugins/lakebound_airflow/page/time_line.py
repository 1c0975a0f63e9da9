"""A table's past as a picture: the versions that a rewind can go back to, the newest at the right, by their age. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from lakebound.control.table_history import Grain, RewindTarget
from lakebound_airflow.page.html_tables import moment

WIDTH, HEIGHT = 1000, 74
_TOP, _BOTTOM = 4, 20
_YOUNGEST = 10.0
"""Seconds: what is younger lies at the right border."""
_TICKS = (
    (60, "1 min"),
    (600, "10 min"),
    (3600, "1 h"),
    (21_600, "6 h"),
    (86_400, "1 d"),
    (604_800, "7 d"),
    (2_592_000, "30 d"),
)
USUAL = ("land", "carry")
_LABEL_ROOM = 40


def time_line(targets: Iterable[RewindTarget], grains: Iterable[Grain], now: float) -> str:
    """Return the picture. Ages are on a logarithmic scale: the last minutes matter as much as the last days.

    Args:
        targets: What can be gone back to.
        grains: How fine the past is.
        now: Epoch seconds.
    """
    shown = list(targets)
    oldest = max([600.0, *(now - one.at for one in shown)])
    kinds = ", ".join(sorted({said(one.kind) for one in shown}))
    title = f"{len(shown)} versions that a rewind can go back to, of the last {duration(oldest)}: {kinds or 'none'}"
    return (
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>'
        f"{''.join(_bands(grains, oldest))}{''.join(_ticks(oldest))}{''.join(_mark(one, oldest, now) for one in shown)}</svg>"
    )


def said(kind: str | None) -> str:
    """Return what a version is, by the kind of its entry."""
    said_of = {
        None: "not by Lakebound",
        "carry": "maintenance",
        "reset": "rewind",
        "land": "landed",
        "erase": "erased",
        "redo": "redone",
    }
    return said_of.get(kind, kind or "")


def duration(seconds: float) -> str:
    """Return a number of seconds in words, in two units at most."""
    whole = int(max(0.0, seconds))
    for unit, word, smaller, part in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= unit:
            rest = whole % unit // smaller
            return f"{whole // unit} {word}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def grain_words(grain: Grain) -> str:
    """Return how fine a stretch of the past is."""
    of = {
        0.0: "every version",
        1.0: "the last of each second",
        60.0: "the last of each minute",
        3600.0: "the last of each hour",
    }
    return f"{of.get(grain.every_seconds, f'one per {duration(grain.every_seconds)}')} for {duration(grain.kept_seconds)}"


def _x(age: float, oldest: float) -> float:
    span = math.log(max(oldest, 2 * _YOUNGEST) / _YOUNGEST)
    return round((WIDTH - 6) * (1 - math.log(max(age, _YOUNGEST) / _YOUNGEST) / span) + 3, 1)


def _bands(grains: Iterable[Grain], oldest: float) -> Iterable[str]:
    right = float(WIDTH)
    for number, grain in enumerate(grains):
        left = 0.0 if grain.kept_seconds >= oldest else _x(grain.kept_seconds, oldest)
        if left < right:
            yield (
                f'<rect class="grain g{number % 2}" x="{left:g}" y="{_TOP}" width="{right - left:g}" '
                f'height="{HEIGHT - _TOP - _BOTTOM}"><title>{escape(grain_words(grain))}</title></rect>'
            )
        right = min(right, left)


def _ticks(oldest: float) -> Iterable[str]:
    for age, word in _TICKS:
        x = _x(age, oldest)
        if age <= oldest and _LABEL_ROOM / 2 < x < WIDTH - _LABEL_ROOM / 2:
            yield f'<line class="grid" x1="{x:g}" x2="{x:g}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
            yield f'<text class="tick" x="{x:g}" y="{HEIGHT - 6}" text-anchor="middle">{word} ago</text>'


def _mark(one: RewindTarget, oldest: float, now: float) -> str:
    is_usual = one.kind in USUAL
    kind = "usual" if is_usual else "reset" if one.kind == "reset" else "event"
    y, height = (26, 20) if is_usual else (10, 44)
    until = "as long as it is current, or a reader needs it" if one.until is None else f"kept until {moment(one.until)}"
    words = f"{moment(one.at)}: version {one.version}, {said(one.kind)}; {until}"
    return (
        f'<rect class="{kind}" x="{_x(now - one.at, oldest) - 1:g}" y="{y}" width="2" height="{height}">'
        f"<title>{escape(words)}</title></rect>"
    )
