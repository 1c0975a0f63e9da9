"""A line chart as SVG, for the pages in docs/: a few lines of text instead of a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 860, 300, 60
COLOURS = ("#1b6ca8", "#d1495b", "#66a182", "#edae49")


@dataclass(frozen=True)
class Curve:
    """One line: its name, and its points from left to right."""

    name: str
    points: Sequence[tuple[float, float]]


def draw(title: str, x_label: str, y_label: str, curves: Sequence[Curve]) -> str:
    """Return the chart as SVG; both axes begin at nought."""
    widest = max((x for curve in curves for x, _ in curve.points), default=1) or 1
    highest = max((y for curve in curves for _, y in curve.points), default=1) or 1

    def place(x: float, y: float) -> str:
        return f"{MARGIN + x / widest * (WIDTH - 2 * MARGIN):.1f},{HEIGHT - MARGIN - y / highest * (HEIGHT - 2 * MARGIN):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{MARGIN}" y="20" font-size="14">{escape(title)}</text>',
        f'<path d="M{MARGIN},{MARGIN} V{HEIGHT - MARGIN} H{WIDTH - MARGIN}" fill="none" stroke="#888"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text x="14" y="{HEIGHT / 2}" transform="rotate(-90 14 {HEIGHT / 2})" text-anchor="middle">{escape(y_label)}</text>',
    ]
    for quarter in range(5):
        x, y = widest * quarter / 4, highest * quarter / 4
        parts.append(f'<text x="{place(x, 0).split(",")[0]}" y="{HEIGHT - MARGIN + 16}" text-anchor="middle">{x:,.0f}</text>')
        parts.append(f'<text x="{MARGIN - 6}" y="{place(0, y).split(",")[1]}" text-anchor="end">{y:,.0f}</text>')
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(place(x, y) for x, y in curve.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{WIDTH - MARGIN - 190}" y="{MARGIN + 16 * number}" fill="{colour}">{escape(curve.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
