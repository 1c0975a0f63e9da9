"""What is decided of reference data: whether a table may be used, and what to do about a newer version. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_ROWS = 500_000
MOST_BYTES = 32 * 1024 * 1024
"""As Arrow, in memory. Spark broadcasts the table with each batch; up to 48 MiB it makes a local relation of it."""
_MEBIBYTE = 1024 * 1024

Step = Literal["keep", "read", "still_refused"]


@dataclass(frozen=True)
class ReferenceFacts:
    """What matters of a table that was read; no value of it.

    Attributes:
        types: Type of each column, by its name, in order.
        rows: Number of rows.
        size_bytes: In memory.
        null_keys: Rows of which a part of the key is null.
        doubled_keys: Rows beyond the first one of their key.
    """

    types: Mapping[str, str]
    rows: int
    size_bytes: int
    null_keys: int = 0
    doubled_keys: int = 0


def key_problem(key: Sequence[str], types: Mapping[str, str]) -> str | None:
    """Return which columns of the key a table lacks; None if it has them all.

    Args:
        key: The declared key.
        types: The table's columns.
    """
    absent = [column for column in key if column not in types]
    if not absent:
        return None
    return f"it has no column {', '.join(absent)}, which its key names; its columns are {', '.join(types) or 'none'}"


def size_problem(rows: int | None, size_bytes: int) -> str | None:
    """Return why a table is too large; None if it is not.

    Args:
        rows: Number of rows; None where it is not known yet.
        size_bytes: In memory, or as far as it is known.
    """
    if rows is not None and rows > MOST_ROWS:
        return f"it has {rows:,} rows, and may have {MOST_ROWS:,}: each batch broadcasts it; leave rows out that are not needed"
    if size_bytes > MOST_BYTES:
        return (
            f"it takes {size_bytes / _MEBIBYTE:.0f} MiB of memory, and may take {MOST_BYTES // _MEBIBYTE}: each batch "
            f"broadcasts it; leave columns and rows out that are not needed"
        )
    return None


def problem_in(facts: ReferenceFacts, key: Sequence[str], before: Mapping[str, str] | None = None) -> str | None:
    """Return why a table cannot be used; None if it can.

    Args:
        facts: What was read.
        key: The declared key.
        before: The columns of the version in use; None at a start. The output of the transform was planned with these.
    """
    found = key_problem(key, facts.types) or size_problem(facts.rows, facts.size_bytes)
    if found:
        return found
    if facts.null_keys:
        return f"{facts.null_keys:,} rows have no value in the key ({', '.join(key)}); every row needs one"
    if facts.doubled_keys:
        return (
            f"{facts.doubled_keys:,} rows have the key ({', '.join(key)}) of another row, so a join would double records; "
            f"remove these rows, or name more columns in the key"
        )
    return _changed_columns(facts.types, before or {})


def next_step(in_use: str, refused: str | None, found: str) -> Step:
    """Return what to do about the version that a source has now.

    Args:
        in_use: The version that the stream uses, or is about to use.
        refused: The version that was last refused; None without any. It is not read again.
        found: The version that the source has.
    """
    if found == in_use:
        return "keep"
    return "still_refused" if found == refused else "read"


def is_due(last_look: float, every_seconds: float, now: float) -> bool:
    """Return whether it is time to look at a source.

    Args:
        last_look: When it was last looked at, in seconds of any one clock.
        every_seconds: The interval.
        now: By the same clock.
    """
    return now - last_look >= every_seconds


def _changed_columns(types: Mapping[str, str], before: Mapping[str, str]) -> str | None:
    lost = [column for column in before if column not in types]
    if lost:
        return f"it lost the columns {', '.join(lost)}; if the transform does not need them, restart the pipeline"
    changed = [f"{column} from {kind} to {types[column]}" for column, kind in before.items() if types[column] != kind]
    if changed:
        return f"it changed the type of {', '.join(changed)}; if that is right, restart the pipeline"
    return None
