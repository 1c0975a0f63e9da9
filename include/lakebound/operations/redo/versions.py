"""Which offsets a version of the code landed, by the entries of all tables of a pipeline. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import chain

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry, Offsets, add, common, count
from lakebound.ledger.source_ranges import landed_by
from lakebound.operations.redo.made_by import MadeBy


class UnknownSourceError(LakeboundError):
    """No table remembers a version of the code of this name, or several do."""

    def __init__(self, pipeline: str, wanted: str, known: list[str], *, fitting: list[str]) -> None:
        what = f"begins {len(fitting)} of them" if fitting else "is none of them"
        super().__init__(
            f"pipeline {pipeline!r}: --source {wanted!r} {what}; its tables remember these versions of the code: "
            f"{', '.join(known) or 'none'}. `lakebound ledger {pipeline} --by-source` shows what each landed. The offsets of"
            f" an older version are not known: give --from and --to"
        )


def find_source(pipeline: str, entries: Mapping[str, Entry], wanted: str) -> str:
    """Return the whole hash of the version whose hash begins as wanted.

    Args:
        pipeline: Its name, for the message.
        entries: The entry that counts, by the table's id.
        wanted: The first characters of a hash, or all of them.

    Raises:
        UnknownSourceError: There is none, or more than one.
    """
    known = sorted({version.hash for entry in entries.values() for version in entry.sources if version.hash})
    fitting = [one for one in known if wanted and one.startswith(wanted)]
    if len(fitting) != 1:
        raise UnknownSourceError(pipeline, wanted, known, fitting=fitting)
    return fitting[0]


def landed_by_source(entries: Mapping[str, Entry], source: str) -> Offsets:
    """Return the offsets that a version landed in any table; it may have run several times.

    Args:
        entries: The entry that counts, by the table's id.
        source: The whole hash.

    Raises:
        TopicRecreatedError: Two tables name different ids of one topic.
    """
    found = (
        offsets
        for entry in entries.values()
        for version, offsets in landed_by(entry.sources, entry.coverage)
        if version is not None and version.hash == source
    )
    return reduce(add, found, {})


def sources_of(made: Mapping[str, Sequence[MadeBy]], wanted: Offsets) -> tuple[str | None, ...]:
    """Return the versions that made the rows of some of the offsets, oldest first; None is what is not known.

    Args:
        made: Which version made what, by the table's id.
        wanted: The offsets.
    """
    found: dict[str | None, None] = {}
    for one in chain.from_iterable(made.values()):
        if count(common(wanted, one.offsets)):
            found[one.version.hash if one.version is not None else None] = None
    return tuple(found)
