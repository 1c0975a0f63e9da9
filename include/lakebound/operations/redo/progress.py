"""How far an approved redo has got: its entries say it, and nothing else does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakebound.ledger.entry import Offsets, add, common, count, missing
from lakebound.ledger.redo_progress import NO_REDO
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
    found, at = NOT_BEGUN, ""
    for committed in entries:
        entry = committed.entry
        if not at:
            at = entry.newest_redo or ""
            if not at or (entry.redo_progress or NO_REDO).plan != plan:
                break
        if entry.kind != "redo" or entry.commit != at:
            continue
        if entry.decision != plan:
            break
        named, stays = add(entry.redoes, entry.redo_stays), add(found.stays, entry.redo_stays)
        found = Standing(entry.redo_first or found.first, add(found.done, named), stays)
        at = entry.redo_before or ""
        if not at or entry.commit == entry.redo_first:
            break
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
