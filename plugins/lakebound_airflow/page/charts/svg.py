"""Draws a chart as SVG. Colours are classes of the page's style sheet, and every text is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from html import escape

from lakebound_airflow.page.charts.axes import moment_text, time_ticks, value_text, value_ticks
from lakebound_airflow.page.charts.model import Chart, Line, Mark, TimeRange, Unit

WIDTH, HEIGHT = 560, 190
LEFT, RIGHT, TOP, BOTTOM = 58, 6, 12, 22


class Plot:
    """Where in the picture moments and values are."""

    def __init__(self, span: TimeRange, highest: float) -> None:
        self._span = span
        self._highest = highest or 1.0

    def x(self, at: float) -> float:
        """Return the place of a moment; one outside of the span is at its border."""
        share = (at - self._span.since) / (self._span.until - self._span.since)
        return round(LEFT + min(1.0, max(0.0, share)) * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Return the place of a value."""
        return round(HEIGHT - BOTTOM - value / self._highest * (HEIGHT - TOP - BOTTOM), 1)


def drawn(chart: Chart, span: TimeRange, marks: Iterable[Mark] = ()) -> str:
    """Return the chart as an ``svg`` element, with its values for the script that shows those under the pointer.

    Args:
        chart: With at least one line.
        span: The time that is shown.
        marks: What happened meanwhile.
    """
    values = [value for line in chart.lines for value in line.values if value is not None]
    ticks = value_ticks(max(values, default=0.0), chart.unit)
    plot = Plot(span, ticks[-1])
    name = escape(chart.id, quote=True)
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" tabindex="0" data-plot="{LEFT},{WIDTH - RIGHT}"'
        f' aria-labelledby="{name}-title {name}-desc" data-series="{escape(_series(chart, span), quote=True)}">'
        f'<title id="{name}-title">{escape(chart.title)}</title><desc id="{name}-desc">{escape(described(chart))}</desc>'
        f"{_grid(plot, ticks, chart.unit, span)}{_marked(plot, marks)}{_band(plot, chart, span)}"
        f"{''.join(_drawn_line(plot, line, number, span) for number, line in enumerate(chart.lines))}"
        f'<line class="pointer" x1="0" x2="0" y1="{TOP}" y2="{HEIGHT - BOTTOM}" visibility="hidden"/></svg>'
    )


def described(chart: Chart) -> str:
    """Return the latest, the lowest and the highest value of each line in words."""
    return "; ".join(_described(line, chart.unit) for line in chart.lines)


def path_of(places: Iterable[tuple[float, float] | None]) -> str:
    """Return the commands of a line through these places; None makes a gap, and a place alone a dot."""
    commands, is_open = [], False
    for place in places:
        if place is not None:
            # A line of no length is drawn as a dot, as its ends are round.
            commands.append(f"L{place[0]:g},{place[1]:g}" if is_open else f"M{place[0]:g},{place[1]:g}h0")
        is_open = place is not None
    return "".join(commands)


def _described(line: Line, unit: Unit) -> str:
    known = [value for value in line.values if value is not None]
    latest, lowest, highest = (value_text(value, unit) for value in (known[-1], min(known), max(known)))
    return f"{line.name}: latest {latest}, lowest {lowest}, highest {highest}"


def _series(chart: Chart, span: TimeRange) -> str:
    lines = [
        {"name": line.name, "values": [None if value is None else float(f"{value:.6g}") for value in line.values]}
        for line in chart.lines
    ]
    return json.dumps(
        {"unit": chart.unit, "since": span.since, "until": span.until, "times": span.times, "lines": lines},
        separators=(",", ":"),
    )


def _grid(plot: Plot, ticks: Sequence[float], unit: Unit, span: TimeRange) -> str:
    parts = []
    for tick in ticks:
        y, text = plot.y(tick), escape(value_text(tick, unit))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:g}" y2="{y:g}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 5}" y="{y + 3.5:g}" text-anchor="end">{text}</text>')
    for at in time_ticks(span.since, span.until):
        text = moment_text(at, span.until - span.since)
        parts.append(f'<text class="tick" x="{plot.x(at):g}" y="{HEIGHT - 6}" text-anchor="middle">{escape(text)}</text>')
    return "".join(parts)


def _marked(plot: Plot, marks: Iterable[Mark]) -> str:
    """Return what happened: what lasted as a bar above the picture, the rest as a line through it."""
    parts, height = [], HEIGHT - TOP - BOTTOM
    for mark in marks:
        x = plot.x(mark.at)
        if mark.until is None:
            line = f'<rect x="{x - 0.5:g}" y="{TOP}" width="1" height="{height}"/>'
            shape = f'<path d="M{x - 4:g},{TOP - 9}h8l-4,8z"/>{line}'
        else:
            shape = f'<rect x="{x:g}" y="{TOP - 8}" width="{max(2.0, plot.x(mark.until) - x):g}" height="5"/>'
        parts.append(f'<g class="mark {mark.kind}"><title>{escape(mark.what)}</title>{shape}</g>')
    return "".join(parts)


def _band(plot: Plot, chart: Chart, span: TimeRange) -> str:
    if not chart.has_band:
        return ""
    both = zip(span.times, chart.lines[0].values, chart.lines[-1].values, strict=True)
    parts: list[str] = []
    run: list[tuple[float, float, float]] = []
    for at, low, high in [*both, (0, None, None)]:
        if low is not None and high is not None:
            run.append((plot.x(at), plot.y(low), plot.y(high)))
            continue
        if run:
            around = [*((x, high_y) for x, _, high_y in run), *((x, low_y) for x, low_y, _ in reversed(run))]
            parts.append("M" + "L".join(f"{x:g},{y:g}" for x, y in around) + "Z")
        run = []
    return f'<path class="band" d="{"".join(parts)}"/>'


def _drawn_line(plot: Plot, line: Line, number: int, span: TimeRange) -> str:
    places = (None if value is None else (plot.x(at), plot.y(value)) for at, value in zip(span.times, line.values, strict=True))
    return f'<path class="line s{number}" d="{path_of(places)}"/>'
