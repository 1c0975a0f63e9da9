"""The first line of an error's message that says anything: Spark's messages often begin with one that does not. Pure."""

from __future__ import annotations

TRACEBACK = "Traceback (most recent call last):"
_POINTS_BELOW = "see the stack trace below"
"""Spark says so of an error in a worker, and has Python's traceback behind it."""


def first_line(error: BaseException | str) -> str:
    """Return the first line with words; the error's class where it has no message.

    Where that line only points to a traceback below, it is the line with which the traceback ends.
    """
    text = str(error)
    for line in text.splitlines():
        if line.strip():
            return (python_error(text) if _POINTS_BELOW in line else None) or line.strip()
    return type(error).__name__ if isinstance(error, BaseException) else "no reason was given"


def python_error(message: str) -> str | None:
    """Return the class and the text of the error whose traceback is in a message; None where none is."""
    _, found, after = message.rpartition(TRACEBACK)
    lines = (line.strip() for line in after.splitlines() if line.strip() and not line.startswith(" "))
    return next(lines, None) if found else None
