"""How far an approved redo has got: its entries say it, and nothing else does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lakebound.ledger.entry import Offsets, add, common, count, missing, redo_in
from lakebound.operations.replay.chunks import chunks
from lakebound.tables.table import CommittedEntry


@dataclass(frozen=True)
class Standing:
    """What the newest redo of a table has done so far.

    Attributes:
        first: Id of the commit with which its plan began in this table.
        done: Offsets that it has made anew, or found that their rows stay, as far as its entries are kept.
        stays: Those of them whose rows stay: Kafka gave no record.
    """

    first: str = ""
    done: Offsets = field(default_factory=dict)
    stays: Offsets = field(default_factory=dict)


NOT_BEGUN = Standing()


def standing(entries: Iterable[CommittedEntry], plan: str) -> Standing:
    """Return what a plan has done in a table, if the newest redo is of this plan.

    A plan that had begun before another one begins anew.

    Args:
        entries: Of the table, newest first; none older than needed is asked for.
        plan: Its hash.
    """
    found = NOT_BEGUN
    for committed in redos(entries, plan):
        entry = committed.entry
        if entry.decision != plan:
            break
        named, stays = add(entry.redoes, entry.redo_stays), add(found.stays, entry.redo_stays)
        found = Standing(entry.redo_first or found.first, add(found.done, named), stays)
        if entry.commit == entry.redo_first:
            break
    return found


def redos(entries: Iterable[CommittedEntry], plan: str | None = None) -> Iterator[CommittedEntry]:
    """Yield the redos, and the undoing of redos, on which the rows of a table stand, newest first, as far as they are kept.

    Args:
        entries: Of the table, newest first; none older than needed is asked for.
        plan: None are yielded if the newest is of another plan; None: whichever it is.
    """
    at = ""
    for committed in entries:
        entry = committed.entry
        if not at:
            at = entry.newest_redo or ""
            if not at or (plan is not None and redo_in(entry).plan != plan):
                return
        if entry.kind != "redo" or entry.commit != at:
            continue
        yield committed
        at = entry.redo_before or ""
        if not at:
            return


def unfinished_since_ms(entries: Iterable[CommittedEntry]) -> int | None:
    """Return since when a table says without a break that something is left, in epoch milliseconds; None: nothing is.

    A redo that took the place of one that was not finished goes on with what that one began.

    Args:
        entries: Of the table, newest first; none older than needed is asked for.
    """
    since = None
    for committed in redos(entries):
        if not redo_in(committed.entry).left:
            break
        since = committed.committed_at_ms
    return since


def redone_since(entries: Iterable[CommittedEntry], since_ms: int) -> Offsets:
    """Return the offsets of which redos, and their undoing, have replaced the rows of a table since a time.

    Args:
        entries: Of the table, newest first; none older than needed is asked for.
        since_ms: The time, in epoch milliseconds.
    """
    found: Offsets = {}
    for committed in redos(entries):
        if committed.committed_at_ms < since_ms:
            break
        found = add(found, committed.entry.redoes)
    return found


def to_do(piece: Offsets, replaces: Offsets, done: Offsets) -> Offsets:
    """Return what of a piece is still to be made anew in a table.

    Args:
        piece: Offsets.
        replaces: Those that the plan makes anew in the table.
        done: Those of which that has been done.
    """
    return missing(common(piece, replaces), done)


def pieces_left(wanted: Offsets, replaces: Mapping[str, Offsets], done: Mapping[str, Offsets], most: int) -> list[Offsets]:
    """Return the pieces of which any table still has something to do, oldest first: Kafka deletes these first.

    A redo that goes on has the same pieces as before, so that each is one commit per table.

    Args:
        wanted: All offsets of the plan.
        replaces: Those of each table, by its id.
        done: Those that each table has done.
        most: Offsets in a piece.
    """
    return [
        piece
        for piece in chunks(wanted, most)
        if any(count(to_do(piece, own, done.get(table, {}))) for table, own in replaces.items())
    ]
