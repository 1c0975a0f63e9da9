"""Which code made the rows that a table has: what landed them, and what redos have made anew since. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce

from lakebound.ledger.entry import Entry, Offsets, add, count, missing
from lakebound.ledger.source_ranges import landed_by
from lakebound.ledger.sources import SourceVersion
from lakebound.operations.redo.progress import redos
from lakebound.tables.table import CommittedEntry


@dataclass(frozen=True)
class MadeBy:
    """Offsets whose rows are of one version of the code.

    Attributes:
        version: The version; None where it is not known.
        offsets: The offsets; perhaps none.
        is_redo: Whether a redo has made the rows; since when is then said by the redo.
    """

    version: SourceVersion | None
    offsets: Offsets
    is_redo: bool = False


def made_by(newest: Entry, entries: Iterable[CommittedEntry], *, before: str | None = None) -> list[MadeBy]:
    """Return which version made what, oldest first; what redos made follows, as far as their entries are kept.

    Args:
        newest: The entry that counts.
        entries: Of the table, newest first; none is asked for where no redo stands.
        before: Hash of the plan of a redo that is left out: what it made counts as what it was before. None: none is.
    """
    redone = list(_redone(newest, entries, before))
    every = reduce(add, (one.offsets for one in redone), Offsets())
    landed = [MadeBy(version, missing(held, every)) for version, held in landed_by(newest.sources, newest.coverage)]
    return [*landed, *redone[::-1]]


def _redone(newest: Entry, entries: Iterable[CommittedEntry], before: str | None) -> Iterator[MadeBy]:
    """Yield what each standing redo made of which nothing came since, newest first; not what the plan ``before`` made."""
    claimed, undone = Offsets(), dict[str, Offsets]()
    for committed in redos(entries) if newest.newest_redo else ():
        entry = committed.entry
        if entry.undoes is not None:
            undone[entry.undoes] = add(undone.get(entry.undoes, {}), entry.redoes)
        elif before is None or entry.decision != before:
            own = missing(missing(entry.redoes, claimed), undone.get(entry.decision or "", {}))
            claimed = add(claimed, own)
            if count(own):
                version = SourceVersion(hash=entry.redo_source, since_ms=committed.committed_at_ms)
                yield MadeBy(version if entry.redo_source else None, own, is_redo=True)
