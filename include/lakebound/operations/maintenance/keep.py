"""What every format keeps of a table's versions: what was promised, and what a rewind left. Pure.

Of a table stays whatever somebody stands on or was promised, and the way from each kept version back to the entry that counts
there: a carried entry may lag behind its version's rows, and a version that is gone ends the walk back to a better one. Each
format has what follows from that in its folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lakebound.operations.maintenance.history import TablePast, Version
from lakebound.spec.maintenance import HistorySpec

Timeline = Sequence[tuple[int, Version]]
"""Since when each version was what the table was, oldest first."""


def undo_until_ms(policy: HistorySpec, left_at_ms: int) -> int:
    """Return until when a version stays that a rewind left at a time: what a rewind promises, and what is kept here."""
    return left_at_ms + to_ms(policy.undo_seconds)


def left_by_repairs(past: TablePast, policy: HistorySpec, now_ms: int) -> set[int]:
    """Return what rewinds, redos and rollbacks left, as long as that can be undone, and the commits after it, which show that.

    Undoing looks for the reset, or for all commits of the redo and the version before the first of them; of a rollback nothing
    else tells once the log of what was current is cut short. What is undone in part stays until that is finished.
    """
    known = {version.version for version in past.versions}
    held = {one for one, at_ms in past.was_current.items() if one in known and undo_until_ms(policy, at_ms) >= now_ms}
    found = set(held)
    for before, version in pairwise(past.versions):
        can_be_undone = version.kind in ("reset", "redo") and undo_until_ms(policy, version.committed_at_ms) >= now_ms
        if can_be_undone or (past.is_undoing and version.kind == "redo") or before.version in held:
            found |= {before.version, version.version}
    return found


def since(timeline: Timeline, moment_ms: int) -> set[int]:
    """Return the versions since a time, and what the table was at that time."""
    return {one.version for at_ms, one in timeline if max(at_ms, one.committed_at_ms) >= moment_ms} | at(timeline, moment_ms)


def at(timeline: Timeline, moment_ms: int) -> set[int]:
    """Return what a rewind to a time goes back to: the last that was current and is not younger."""
    return {next((version.version for at_ms, version in reversed(timeline) if at_ms <= moment_ms), -1)} - {-1}


def counts(version: Version) -> bool:
    """Whether a version's own entry says what the table holds."""
    return version.kind is not None and version.kind != "carry"


def to_ms(seconds: float) -> int:
    """Return seconds in milliseconds."""
    return round(seconds * 1000)
