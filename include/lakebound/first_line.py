"""The first line of an error's message that says anything: Spark's messages often begin with an empty one. Pure."""

from __future__ import annotations


def first_line(error: BaseException | str) -> str:
    """Return the first line with words; the error's class where it has no message."""
    for line in str(error).splitlines():
        if line.strip():
            return line.strip()
    return type(error).__name__ if isinstance(error, BaseException) else "no reason was given"
