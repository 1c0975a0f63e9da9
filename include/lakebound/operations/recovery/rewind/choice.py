"""To which version of a table a rewind, or the undoing of one, goes back. Pure.

Each table goes back to its own last version at or before the time. Their coverages may then differ by a batch. That does no
harm: the stream starts at the lowest mark, and writes to each table only what that table lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakebound.ledger.entry import Offsets, common, missing
from lakebound.tables.table import TableVersion

_WITHOUT_ROWS = ("open", "carry")


@dataclass(frozen=True)
class LastRewind:
    """The last rewind of a table.

    Attributes:
        plan: The hash of its plan.
        reset_at_ms: When this table was restored.
        is_undone: Whether that was undone since.
        before: The version before the rewind; None if the history no longer reaches it.
    """

    plan: str
    reset_at_ms: int
    is_undone: bool
    before: TableVersion | None


def split_at(versions: Iterable[TableVersion], moment_ms: int) -> tuple[list[TableVersion], TableVersion | None]:
    """Return the versions after a time, newest first, and the newest one at or before it; None if none is kept.

    Args:
        versions: Of a table, newest first; older ones than the returned version are not read.
        moment_ms: The time.
    """
    newer: list[TableVersion] = []
    for version in versions:
        if version.committed_at_ms <= moment_ms:
            return newer, version
        newer.append(version)
    return newer, None


def left_by_earlier_epochs(newer: Sequence[TableVersion], epoch: int) -> TableVersion | None:
    """Return the oldest version to which the quarantine may go back, or None if it may go back to that of the time.

    An application commits a batch's bad records before the tables commit their coverage of them, so at any time of its clock
    the quarantine has the bad records of all that the tables cover. Two applications may have run on machines whose clocks
    differ: if the tables go back to a version of the later one, everything of the earlier one stays in them, and must stay
    in the quarantine, whatever its timestamps are.

    Args:
        newer: Versions of the quarantine after the time, newest first.
        epoch: The highest epoch of the entries at the versions to which the tables go back.
    """
    return next((version for version in newer if version.entry is not None and version.entry.epoch < epoch), None)


def ahead_of_thinning(
    version: TableVersion, holds: Offsets, newer: Sequence[TableVersion], covered: Sequence[Offsets]
) -> TableVersion:
    """Return the quarantine's version, or the next one if only that is sure to have the bad records of what tables cover.

    Maintenance keeps only the last version of each second, minute and hour of an Iceberg table's past. The quarantine's version
    may then be from before a batch and the tables' from after it, although they were committed the other way round. The next
    kept version comes after everything in between. A quarantine that is ahead does no harm: what it has is not written again.

    Args:
        version: The quarantine's version at the time.
        holds: The quarantine's coverage at that version.
        newer: The quarantine's versions after it, newest first.
        covered: The tables' coverage at the versions to which they go back.
    """
    following = next((one for one in reversed(newer) if one.entry is not None), None)
    if following is None or following.entry is None:
        return version
    unseen = missing(missing(following.entry.coverage, holds), following.entry.range)
    return following if any(common(unseen, one) for one in covered) else version


def last_rewind(versions: Iterable[TableVersion]) -> LastRewind | None:
    """Return what the newest reset of a table says about its last rewind; None if no rewind made that reset.

    A rewind that was interrupted and applied again has restored the table twice, and nothing landed in between: the version
    before the rewind is the one before the first of these resets.

    Args:
        versions: Of the table, newest first.
    """
    older = iter(versions)
    newest = next((version for version in older if version.entry is not None and version.entry.kind == "reset"), None)
    if newest is None or newest.entry is None:
        return None
    plan = newest.entry.rewind or newest.entry.undoes
    if plan is None:
        return None
    is_undone = newest.entry.rewind is None
    if is_undone:
        found = next((version for version in older if version.entry is not None and version.entry.rewind == plan), None)
        if found is None:
            return LastRewind(plan, newest.committed_at_ms, is_undone=True, before=None)
        newest = found
    return LastRewind(plan, newest.committed_at_ms, is_undone=is_undone, before=_left_by(older, plan))


def _left_by(older: Iterable[TableVersion], plan: str) -> TableVersion | None:
    """Return the version before the oldest of a plan's resets, as long as nothing was landed between these resets."""
    left: TableVersion | None = None
    for version in older:
        entry = version.entry
        if entry is not None and entry.rewind == plan:
            left = None
            continue
        left = left or version
        if entry is not None and entry.kind not in _WITHOUT_ROWS:
            break
    return left
