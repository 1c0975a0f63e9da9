"""Which version of a table a rewind, or the undoing of one, goes back to. Pure.

Each table goes back to its own last version at or before the time. Their coverages may then differ by a batch, and need not
be brought to one: the stream starts at the lowest mark, and trims what it reads to what each table does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lakebound.ledger.entry import Offsets, common, missing
from lakebound.tables.table import TableVersion

_WITHOUT_ROWS = ("open", "carry")


@dataclass(frozen=True)
class LastRewind:
    """The rewind that a table went through last.

    Attributes:
        plan: The hash of its plan.
        reset_at_ms: When this table was put back.
        is_undone: Whether that was undone since.
        before: The version that it left, None where history no longer goes back to it.
    """

    plan: str
    reset_at_ms: int
    is_undone: bool
    before: TableVersion | None


def split_at(versions: Iterable[TableVersion], moment_ms: int) -> tuple[list[TableVersion], TableVersion | None]:
    """Return the versions after a time, newest first, and the newest at or before it; None where none is kept.

    Args:
        versions: Of a table, newest first; those older than what is returned are not asked for.
        moment_ms: The time.
    """
    newer: list[TableVersion] = []
    for version in versions:
        if version.committed_at_ms <= moment_ms:
            return newer, version
        newer.append(version)
    return newer, None


def left_by_earlier_epochs(newer: Sequence[TableVersion], epoch: int) -> TableVersion | None:
    """Return the version that the quarantine must not fall behind, None where it may go back to that of the time.

    An application commits a batch's bad records before the tables commit their coverage of them, so at any time of its clock
    the quarantine holds the bad records of all that the tables cover. Two applications may have run on machines whose clocks
    differ: where the tables go back to a version of the later one, everything of the earlier one stays in them, and must stay
    in the quarantine, whatever time it was stamped with.

    Args:
        newer: Versions of the quarantine after the time, newest first.
        epoch: The highest of the entries that count at the versions to which the tables go back.
    """
    return next((version for version in newer if version.entry is not None and version.entry.epoch < epoch), None)


def ahead_of_thinning(
    version: TableVersion, holds: Offsets, newer: Sequence[TableVersion], covered: Sequence[Offsets]
) -> TableVersion:
    """Return the quarantine's version, or the next one where only that is sure to hold the bad records of what tables cover.

    Of an Iceberg table's past the last version of each second, minute and hour stays. The quarantine's may then be from before
    a batch and the tables' from after it, though they were committed the other way round. The next version that is kept comes
    after all that went in between. A quarantine that is ahead does no harm: what it holds is not put there again.

    Args:
        version: Of the time.
        holds: What the quarantine covers there.
        newer: The quarantine's versions after it, newest first.
        covered: What the tables cover at the versions to which they go back.
    """
    following = next((one for one in reversed(newer) if one.entry is not None), None)
    if following is None or following.entry is None:
        return version
    unseen = missing(missing(following.entry.coverage, holds), following.entry.range)
    return following if any(common(unseen, one) for one in covered) else version


def last_rewind(versions: Iterable[TableVersion]) -> LastRewind | None:
    """Return what the newest reset of a table says of its last rewind, None where no rewind made it.

    A rewind that was cut short and applied again has put the table back twice, and nothing landed in between: what it left
    is the version before the first of these resets.

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
    """Return the version before the oldest of a plan's resets between which nothing was landed."""
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
