"""Which offsets a table has when its entries no longer say it: from an older version's entry, else from its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow.compute as pc

from lakebound.errors import (
    BadEntryError,
    LakeboundError,
    NewerEntryError,
    NoLedgerError,
    TableRestoredError,
    TopicRecreatedError,
)
from lakebound.ledger.entry import Entry, FormerCoverage, Offsets, TopicOffsets, add, count, missing, redo_in
from lakebound.ledger.intervals import gaps, total
from lakebound.ledger.redo_progress import NO_REDO, RedoProgress
from lakebound.tables.reconstruction import from_rows
from lakebound.tables.table import Table

RebuiltFrom = Literal["entry", "statistics", "scan"]


class ContradictedEntryError(LakeboundError):
    """A table was restored to a version whose entry does not agree with its rows."""

    def __init__(self, table: str, version: int, offsets: int) -> None:
        super().__init__(
            f"table {table} was restored to version {version}, but {offsets} offsets of its rows are not in the ledger entry "
            f"of that version: another writer added these rows, and a person must find out which rows they are"
        )


@dataclass(frozen=True)
class Rebuilt:
    """Which offsets a table has, and how that is known.

    Attributes:
        coverage: Of each topic's current incarnation. From rows it goes from the first to the last landed offset: landing is in
            order, so everything between was processed; what was filtered after the last row is read and filtered again.
        source: The entry of the version that a RESTORE brought back, the files' column statistics, or a scan of the rows.
        version: Of that entry; empty otherwise.
        former: Of earlier incarnations of recreated topics.
        released: How many offsets were released from quarantine so far, from an entry; rows do not show it.
        newest_redo: Id of the commit of the newest redo that stands, from an entry; empty without one. None: not known.
        redo_progress: How much of it is left, from the same entry.
        rowless: Offsets inside the coverage without a row in the table; 0 with an entry, which counts them.
    """

    coverage: Offsets
    source: RebuiltFrom
    version: str = ""
    former: FormerCoverage = field(default_factory=dict)
    rowless: int = 0
    released: int = 0
    newest_redo: str | None = None
    redo_progress: RedoProgress = NO_REDO


def rebuild(table: Table, reason: LakeboundError, topic_ids: Mapping[str, str]) -> Rebuilt | None:
    """Return the offsets of the table, or None if this does not repair the reason for which its ledger was refused.

    Args:
        table: The table; it is only read.
        reason: What ``read_ledger`` raised.
        topic_ids: Of the pipeline's topics as the broker has them.

    Raises:
        ContradictedEntryError: The version that was restored has an entry, and the rows contradict it.
        TopicRecreatedError: The rows are of several incarnations of a topic, and the broker has none of them.
    """
    if isinstance(reason, TableRestoredError):
        entry, version = _restored_entry(table, reason)
        if entry is not None:
            _check_rows(table, entry, version, topic_ids)
            redo = entry.newest_redo or ""
            found = Rebuilt(entry.coverage, "entry", str(version), entry.former, released=entry.released, newest_redo=redo)
            return replace(found, redo_progress=redo_in(entry))
        return _from_table(table, topic_ids)
    if isinstance(reason, NewerEntryError):
        return None  # it is whole, and says more than the rows do
    return _from_table(table, topic_ids) if isinstance(reason, NoLedgerError | BadEntryError) else None


def rebuild_behind(table: Table, entry: Entry, topic_ids: Mapping[str, str]) -> Rebuilt | None:
    """Return the offsets of a table whose entry maintenance copied, or None if that entry is not older than the rows.

    Args:
        table: The table; it is only read.
        entry: The entry that counts.
        topic_ids: Present ids of the pipeline's topics, by topic.

    Raises:
        TopicRecreatedError: The rows are of several incarnations of a topic, and the broker has none of them.
    """
    if entry.kind != "carry":
        return None
    found, source, former = _offsets_of_rows(table, topic_ids)
    if not count(missing(found, entry.coverage)):
        return None
    return Rebuilt(_filled(add(found, entry.coverage)), source, "", {**former, **entry.former}, released=entry.released)


def _restored_entry(table: Table, reason: TableRestoredError) -> tuple[Entry | None, int]:
    """Return the entry that was valid at the restored version, and that version; a restore of a restore goes further back."""
    restored_to = reason.restored_to
    while restored_to is not None:
        try:
            return table.look_back(str(restored_to)).entry, restored_to
        except TableRestoredError as earlier:
            restored_to = earlier.restored_to
        except LakeboundError:
            break
    return None, 0


def _check_rows(table: Table, entry: Entry, version: int, topic_ids: Mapping[str, str]) -> None:
    found, _, former = _offsets_of_rows(table, topic_ids)
    outside = count(missing(found, entry.coverage))
    for topic, incarnations in former.items():
        present = (entry.coverage[topic],) if topic in entry.coverage else ()
        known = {held.topic_id: held for held in (*entry.former.get(topic, ()), *present)}
        outside += sum(count(missing({topic: held}, _one(topic, known.get(held.topic_id)))) for held in incarnations)
    if outside:
        raise ContradictedEntryError(table.spec.id, version, outside)


def _one(topic: str, held: TopicOffsets | None) -> Offsets:
    return {} if held is None else {topic: held}


def _from_table(table: Table, topic_ids: Mapping[str, str]) -> Rebuilt:
    found, source, former = _offsets_of_rows(table, topic_ids)
    rowless = sum(total(gaps(intervals)) for held in found.values() for intervals in held.partitions.values())
    return Rebuilt(_filled(found), source, "", former, rowless)


def _offsets_of_rows(table: Table, topic_ids: Mapping[str, str]) -> tuple[Offsets, RebuiltFrom, FormerCoverage]:
    """Return which offsets have rows, of the current incarnations and of former ones."""
    try:
        found = table.reconstruct()
    except TopicRecreatedError:
        return _by_incarnation(table, topic_ids)
    return (found.coverage, found.source, {}) if found is not None else ({}, "statistics", {})


def _by_incarnation(table: Table, topic_ids: Mapping[str, str]) -> tuple[Offsets, RebuiltFrom, FormerCoverage]:
    kafka = table.scan_kafka()
    coverage: Offsets = {}
    former: dict[str, tuple[TopicOffsets, ...]] = {}
    incarnations: dict[str, list[str]] = {}
    for key in kafka.group_by(["topic", "topic_id"]).aggregate([]).to_pylist():
        incarnations.setdefault(key["topic"], []).append(key["topic_id"])
    for topic, ids in incarnations.items():
        present = ids[0] if len(ids) == 1 else topic_ids.get(topic, "unknown")
        if present not in ids:
            raise TopicRecreatedError(topic, ", ".join(sorted(ids)), present)
        for topic_id in ids:
            chosen = pc.and_(pc.equal(kafka["topic"], topic), pc.equal(kafka["topic_id"], topic_id))
            held = from_rows(kafka.filter(chosen)).coverage
            if topic_id == present:
                coverage = add(coverage, held)
            else:
                former[topic] = (*former.get(topic, ()), held[topic])
    return coverage, "scan", former


def _filled(found: Offsets) -> Offsets:
    """Return the range from the first to the last offset of each partition."""
    return {
        topic: TopicOffsets(
            topic_id=held.topic_id,
            partitions={p: ((intervals[0][0], intervals[-1][1]),) for p, intervals in held.partitions.items() if intervals},
        )
        for topic, held in found.items()
    }
