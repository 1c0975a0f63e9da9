"""How far an approved redo has got: its entries say it, and nothing else does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lakebound.ledger.entry import Offsets, add, common, count, missing
from lakebound.operations.replay.chunks import chunks
from lakebound.tables.table import CommittedEntry


def done_by(entries: Iterable[CommittedEntry], decision: str) -> Offsets:
    """Return the offsets of a table that the redos of a plan have made anew, as far as their entries are kept.

    What another plan has made anew since is not among them: its code was another.

    Args:
        entries: Of the table, newest first; none older than needed is asked for.
        decision: Hash of the plan.
    """
    done: Offsets = {}
    others: Offsets = {}
    redo: str | None = None
    for committed in entries:
        entry = committed.entry
        redo = entry.newest_redo if redo is None else redo
        if not redo:
            break
        if entry.kind != "redo" or entry.commit != redo:
            continue
        if entry.decision == decision:
            done = add(done, missing(entry.redoes, others))
        else:
            others = add(others, entry.redoes)
        redo = entry.redo_before or ""
    return done


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
