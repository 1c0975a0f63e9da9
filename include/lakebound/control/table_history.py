"""To which times each table can be rewound, and until when: as maintenance last wrote it down. Small, and for looking at.

The history itself is in the tables. Whoever shows it reads this file, and opens no table.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field, TypeAdapter

from lakebound.control.bounds import Count, Moment
from lakebound.control.folder import ControlFolder, read_bytes, write_text
from lakebound.control.state_text import cut_text

MOST_TARGETS = 300
"""Of one table."""
MOST_TARGETS_OF_ALL = 3000
MOST_PROBLEMS = 20
MOST_GRAINS = 10
_PROBLEM_CHARS = 400
_WORD_CHARS = 100


@dataclass(frozen=True, slots=True)
class RewindTarget:
    """A version that a rewind can go back to.

    Attributes:
        at: Since when the table was it, in epoch seconds: a rewind to this time, or later up to the next one, goes back to it.
        version: Delta version or Iceberg snapshot id.
        kind: Of its ledger entry; None where the commit has none, such as somebody else's.
        until: Until when maintenance keeps it, in epoch seconds; None where that is not bounded: it is the current one, or a
            reader has still to read it.
    """

    at: Moment
    version: Annotated[str, Field(max_length=_WORD_CHARS)]
    kind: Annotated[str, Field(max_length=_WORD_CHARS)] | None = None
    until: Moment | None = None


@dataclass(frozen=True, slots=True)
class Grain:
    """How fine the past is: one version per so many seconds (0: every one) stays for so many seconds."""

    kept_seconds: Moment
    every_seconds: Moment = 0.0


@dataclass(frozen=True, slots=True)
class TableHistory:
    """One table.

    Attributes:
        looked_at: When maintenance looked, in epoch seconds.
        targets: Oldest first: the newest ones, and of older ones a choice.
        versions: How many versions it had.
        grains: How fine the past is, from the newest to the oldest.
        problems: Why nothing is removed from it.
    """

    looked_at: Moment
    targets: tuple[RewindTarget, ...] = ()
    versions: Count = 0
    grains: tuple[Grain, ...] = ()
    problems: tuple[str, ...] = field(default_factory=tuple)


Histories = dict[str, TableHistory]
"""By table id."""

_json = TypeAdapter(Histories)


def read_table_history(control: ControlFolder) -> Histories:
    """Return what was written last; empty where nothing was. Of more than was asked for, the newest.

    Raises:
        ValueError: It cannot be read.
        OSError: The file is there and cannot be read.
    """
    try:
        found = _json.validate_json(read_bytes(control.table_history))
    except FileNotFoundError:
        return {}
    return {table: _bounded(history) for table, history in found.items()}


def write_table_history(control: ControlFolder, histories: Histories) -> None:
    """Replace the file; it is not synced.

    Raises:
        OSError: The disk does not take it; the file is as it was.
    """
    write_text(control.table_history, _json.dump_json(histories, exclude_defaults=True).decode())


def _bounded(history: TableHistory) -> TableHistory:
    problems = tuple(cut_text(problem, _PROBLEM_CHARS) for problem in history.problems[:MOST_PROBLEMS])
    return replace(history, targets=history.targets[-MOST_TARGETS:], grains=history.grains[:MOST_GRAINS], problems=problems)
