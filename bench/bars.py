"""A chart of horizontal bars as SVG: per name a bar up to its first value, and a thin line on to its second."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, ROW, TOP = 900, 230, 130, 22, 40


def draw(title: str, rows: Sequence[tuple[str, float, float]], unit: str) -> str:
    """Return the chart; rows are (name, value of the bar, value of the line)."""
    height = TOP + ROW * len(rows) + 14
    widest = max((value for row in rows for value in row[1:]), default=1.0) or 1.0
    scale = (WIDTH - LEFT - RIGHT) / widest
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="10" y="20" font-size="14">{escape(title)}</text>',
    ]
    for number, (name, value, line) in enumerate(rows):
        y = TOP + ROW * number
        colour = "#1b6ca8" if name.startswith("lakebound") else "#9aa5b1"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{escape(name)}</text>')
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{value * scale:.1f}" height="15" fill="{colour}"/>')
        parts.append(f'<path d="M{LEFT},{y + 7.5} H{LEFT + line * scale:.1f}" stroke="{colour}"/>')
        end = LEFT + max(value, line) * scale + 6
        parts.append(f'<text x="{end:.1f}" y="{y + 12}">{value:,.0f} / {line:,.0f} {escape(unit)}</text>')
    return "\n".join([*parts, "</svg>", ""])
