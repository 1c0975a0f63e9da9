"""Pieces of HTML that the server makes: tables, lines and moments. A cell is HTML already; all else is escaped here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from html import escape

from lakebound.control.state_text import cut_text

MOST_TOLD, TOLD_CHARS = 50, 400
"""Problems that are told, and characters of each."""


def table(caption: str, heads: Sequence[str], lines: Iterable[str], kind: str = "") -> str:
    """Return a table.

    Args:
        caption: What it shows.
        heads: Names of the columns; that of a column of numbers begins with ``#``.
        lines: Made by ``line``.
        kind: Its class in the style sheet.
    """
    cells = "".join(f'<th scope="col"{_kind(head.startswith("#"))}>{escape(head.removeprefix("#"))}</th>' for head in heads)
    head = f"<caption>{escape(caption)}</caption><thead><tr>{cells}</tr></thead>"
    return f'<table class="{kind}">{head}<tbody>{"".join(lines)}</tbody></table>'


def line(*cells: str | int | None) -> str:
    """Return a row of numbers and of HTML; a number that is not known is a dash."""
    made = (
        f"<td>{cell}</td>" if isinstance(cell, str) else f'<td class="number">{"–" if cell is None else f"{cell:,}"}</td>'
        for cell in cells
    )
    return f"<tr>{''.join(made)}</tr>"


def told(problems: Iterable[str]) -> str:
    """Return what could not be read as a list; nothing where all was read."""
    lines = "".join(f"<li>{escape(problem)}</li>" for problem in told_problems(problems))
    return f'<ul class="problems">{lines}</ul>' if lines else ""


def told_problems(problems: Iterable[str]) -> tuple[str, ...]:
    """Return what could not be read, or is wrong, as far as it is shown: a file of somebody else may say much."""
    found = list(problems)
    more = [f"and {len(found) - MOST_TOLD:,} more"] if len(found) > MOST_TOLD else []
    return tuple(cut_text(problem, TOLD_CHARS) for problem in [*found[:MOST_TOLD], *more])


def moment(at: float) -> str:
    """Return epoch seconds as a date and time in UTC; a dash where no calendar has the day."""
    return _at(at, lambda when: when.strftime("%Y-%m-%d %H:%M:%S UTC"))


def exact_moment(at: float) -> str:
    """Return epoch seconds as commands take a time, with milliseconds; a dash where no calendar has the day."""
    return _at(at, lambda when: when.isoformat(timespec="milliseconds").replace("+00:00", "Z"))


def _at(at: float, told: Callable[[datetime], str]) -> str:
    try:
        return told(datetime.fromtimestamp(at, UTC))
    except (ArithmeticError, OSError, ValueError):
        return "–"


def _kind(is_number: bool) -> str:
    return ' class="number"' if is_number else ""
