"""Which of a table's entries counts, and reading one that anybody who may write to the table could have forged. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from lakebound.errors import BadEntryError
from lakebound.ledger.entry import ENTRY_KEY, Entry, decode
from lakebound.tables.fence import MAX_EPOCH
from lakebound.tables.table import CommittedEntry

MAX_ENTRY_BYTES = 8 * 1024 * 1024
"""An entry is some hundred bytes per partition; one beyond this bound is not ours."""

_MAX_OFFSET = 2**63 - 1


def read_entry(text: str | None, where: str) -> Entry | None:
    """Return the entry in a commit's metadata, or None where the metadata is somebody else's.

    Args:
        text: The commit's metadata; None where it has none.
        where: What is read, for messages.

    Raises:
        BadEntryError: It says it is an entry, and cannot be read or cannot be true.
    """
    if not text or ENTRY_KEY not in text:
        return None
    if len(text) > MAX_ENTRY_BYTES:
        raise BadEntryError(where, f"it has {len(text)} characters, more than {MAX_ENTRY_BYTES}")
    try:
        entry = decode(text, where)
    except RecursionError as exc:
        raise BadEntryError(where, "it is nested too deeply") from exc
    if entry is None:
        if text.lstrip().startswith(f'{{"{ENTRY_KEY}"'):
            raise BadEntryError(where, "it is not JSON")
        return None
    _check_bounds(entry, where)
    return entry


def newest_readable(entries: Iterable[CommittedEntry]) -> CommittedEntry | None:
    """Return the newest entry, or None where there is none or it cannot be read."""
    try:
        return next(iter(entries), None)
    except BadEntryError:
        return None


def _check_bounds(entry: Entry, where: str) -> None:
    if entry.epoch > MAX_EPOCH:
        raise BadEntryError(where, f"epoch {entry.epoch} is beyond {MAX_EPOCH}")
    for topic, offsets in entry.coverage.items():
        for partition, intervals in offsets.partitions.items():
            if not 0 <= partition < 2**31 or (intervals and intervals[-1][1] > _MAX_OFFSET):
                raise BadEntryError(where, f"no Kafka has partition {partition} of {topic!r} with offsets {intervals[-1:]}")


def counting(entries: Iterable[CommittedEntry]) -> CommittedEntry | None:
    """Return the entry that counts, of a table's entries newest first.

    That is the newest which is not ``carry``. A maintenance commit reads the entry that it carries on before it works, and a
    batch may land meanwhile; the newest entry is then an old one. A ``carry`` counts only where nothing else can be reached.
    """
    carried: CommittedEntry | None = None
    for committed in entries:
        if committed.entry.kind != "carry":
            return committed
        carried = carried or committed
    return carried
