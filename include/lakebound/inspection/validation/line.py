"""What of a table's history is due to be validated: its standing line of commits against what was validated. Pure.

A commit has a position, a number that only grows: Delta's version, Iceberg's sequence number. The standing line goes from the
current commit back over each commit's parent; what a rewind undid is not on it. A claim always takes the oldest part of the
line that is not validated, so a validated position implies that all before it on its line are validated, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from lakebound.ledger.entry import EntryKind
from lakebound.ledger.intervals import Interval, Intervals, merge

NO_NEW_DATA: tuple[EntryKind, ...] = ("genesis", "open", "erase", "skip", "reset", "carry")
"""Entries of commits that land nothing."""


@dataclass(frozen=True)
class LineCommit:
    """One commit on the standing line.

    Attributes:
        position: Its place among all commits of the table.
        version: Delta version or Iceberg snapshot id.
        committed_at_ms: By the clock of who committed.
        parent: Position of the commit that it follows; None for the first, or where that is no longer kept.
        kind: Of the entry in this commit; None where it carries none.
        rows: Rows that it lands, by its entry.
        offsets: How many offsets the table's coverage holds after it; None without an entry.
        own_offsets: How many of these are this commit's.
    """

    position: int
    version: str
    committed_at_ms: int
    parent: int | None
    kind: EntryKind | None
    rows: int = 0
    offsets: int | None = None
    own_offsets: int = 0

    @property
    def lands(self) -> bool:
        """Whether it brings rows that are new."""
        return self.kind is not None and self.kind not in NO_NEW_DATA and self.rows > 0


@dataclass(frozen=True)
class Gap:
    """Commits that can no longer be read one by one, so nobody can say what landed in them.

    Attributes:
        positions: Where they are.
        offsets: How many offsets they landed, by the coverage before and after them.
        is_before_first: They are older than all that was ever validated of the table.
    """

    positions: Intervals
    offsets: int
    is_before_first: bool = False


@dataclass(frozen=True)
class Due:
    """What is to be validated next of one table.

    Attributes:
        table: Its id.
        positions: All commits of the range, those that land nothing included.
        landings: Those that land rows, oldest first.
        newest: The last commit of the range.
        since_ms: When the commit before the range was made; None where that is not known.
        oldest_ms: When the oldest commit was made that was read with the range; None where that is not known.
        gap: What of the range cannot be read.
        is_cut: Whether more is due after it.
    """

    table: str
    positions: Intervals
    landings: tuple[LineCommit, ...]
    newest: LineCommit
    since_ms: int | None = None
    oldest_ms: int | None = None
    gap: Gap | None = None
    is_cut: bool = False

    @property
    def rows(self) -> int:
        """Rows that it landed."""
        return sum(step.rows for step in self.landings)


@dataclass(frozen=True)
class Line:
    """A standing line, newest first: down to the first validated commit, which is the last step, or as far as it is kept."""

    table: str
    steps: tuple[LineCommit, ...] = ()


@dataclass(frozen=True)
class ValidatedSoFar:
    """What was validated of a table so far.

    Attributes:
        positions: Its commits.
        offsets: Position of a range's last commit to how many offsets the coverage held there.
    """

    positions: Intervals = ()
    offsets: Mapping[int, int] = field(default_factory=dict)

    def has(self, position: int) -> bool:
        """Whether the commit there was validated."""
        return any(start <= position < end for start, end in self.positions)

    def end_below(self, position: int) -> int:
        """Return the position after the last validated commit below another one; 0 where there is none."""
        return max((min(end, position) for start, end in self.positions if start < position), default=0)

    def offsets_below(self, position: int) -> int:
        """Return how many offsets the coverage held at the end of the last range that ended below a position."""
        ends = [end for end in self.offsets if end < position]
        return self.offsets[max(ends)] if ends else 0


def due(line: Line, done: ValidatedSoFar, *, max_rows: int, within: Intervals | None = None) -> Due | None:
    """Return what is due, or None where nothing landed since.

    Args:
        line: The table's standing line.
        done: What was validated.
        max_rows: A longer range is cut at the commit that exceeds it.
        within: Only these positions: those of a claim that was begun and not ended. They are due whatever landed in them.
    """
    new = [step for step in reversed(line.steps) if not done.has(step.position)]
    if within is not None:
        taken = [step for step in new if any(start <= step.position < end for start, end in within)]
        holes, lost = list[Interval](), 0
    else:
        taken = _first(new, max_rows)
        holes, lost = _holes(taken, line, done)
    landings = tuple(step for step in taken if step.lands)
    if not taken or not (landings or lost or within is not None):
        return None
    before = next((step for step in line.steps if step.position < taken[0].position), None)
    return Due(
        table=line.table,
        positions=merge((*((step.position, step.position + 1) for step in taken), *holes)),
        oldest_ms=line.steps[-1].committed_at_ms,
        landings=landings,
        newest=taken[-1],
        since_ms=before.committed_at_ms if before else None,
        gap=Gap(tuple(holes), lost, is_before_first=not done.positions) if lost else None,
        is_cut=len(taken) < len(new),
    )


def _first(oldest_first: Sequence[LineCommit], max_rows: int) -> list[LineCommit]:
    taken: list[LineCommit] = []
    rows = 0
    for step in oldest_first:
        rows += step.rows if step.lands else 0
        # Not before the first that lands: what lands nothing is no range, and would be looked at for ever.
        if rows > max_rows and any(one.lands for one in taken):
            break
        taken.append(step)
    return taken


def _holes(taken: Sequence[LineCommit], line: Line, done: ValidatedSoFar) -> tuple[list[Interval], int]:
    """Return the positions before and between commits, oldest first, that cannot be read, and the offsets landed there."""
    holes: list[Interval] = []
    lost = 0
    positions = {step.position for step in taken}
    for newer, older in pairwise(line.steps):
        if newer.position in positions and newer.parent != older.position:
            holes.append((older.position + 1, newer.position))
            lost += _offsets_between(older.offsets, newer)
    if taken and line.steps[-1] is taken[0] and taken[0].kind != "genesis":
        floor = done.end_below(taken[0].position)
        holes.append((floor, taken[0].position))
        lost += _offsets_between(done.offsets_below(floor), taken[0])
    return [hole for hole in holes if hole[0] < hole[1]], lost


def _offsets_between(before: int | None, newer: LineCommit) -> int:
    if before is None or newer.offsets is None:
        return 0
    return max(0, newer.offsets - newer.own_offsets - before)
