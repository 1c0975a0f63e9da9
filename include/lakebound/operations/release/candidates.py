"""Which quarantined records may be landed after all: the table's own rows decide, so none can land twice.

An offset is a candidate of a table when the table covers it (else the stream or a replay will land it) and has no row of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lakebound.inspection.proof.history import spans_of
from lakebound.inspection.proof.offset_arrays import (
    Arrays,
    beyond,
    both,
    distinct,
    either,
    index_rows,
    size,
    spans_from,
    within,
    without,
)
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.intervals import Intervals
from lakebound.operations.release.reading import keys_of
from lakebound.tables.erased import read_erased
from lakebound.tables.table import LedgerView, Table


@dataclass(frozen=True)
class Held:
    """What a table says of quarantined offsets, at the version of its ledger that was read before its rows.

    Attributes:
        view: The ledger.
        lacking: Covered, without a row, and none was erased by decision.
        landed: With rows.
        uncovered: Not covered, or of another incarnation of the topic.
    """

    view: LedgerView
    lacking: Arrays
    landed: Arrays
    uncovered: Arrays


def offsets_in(index: pa.Table) -> Arrays:
    """Return the distinct offsets in an index of the quarantine, sorted."""
    offsets = index["offset"].to_numpy()
    return {key: distinct(np.sort(offsets[positions])) for key, positions in keys_of(index)}


def look_at(table: Table, quarantined: Arrays) -> Held:
    """Return what a table holds of the offsets. Its ledger is read first, so that a commit on that version is a true judge."""
    view = table.read_ledger()
    rows = index_rows(table.scan_kafka()).records
    covered = _within(quarantined, view.coverage)
    return Held(
        view=view,
        lacking=_solid(beyond(without(covered, rows), read_erased(table, view.entry).records)),
        landed=both(quarantined, rows),
        uncovered=beyond(quarantined, spans_of(view.coverage)),
    )


def chunks(held: Mapping[str, Held], most: int) -> Iterator[Arrays]:
    """Yield what any of the tables lacks, in pieces of at most ``most`` offsets, partition after partition."""
    every: Arrays = {}
    for one in held.values():
        every = either(every, one.lacking)
    piece: Arrays = {}
    for key, offsets in sorted(every.items()):
        while len(offsets):
            room = most - size(piece)
            piece[key], offsets = offsets[:room], offsets[room:]
            if size(piece) >= most:
                yield piece
                piece = {}
    if size(piece):
        yield piece


def as_offsets(arrays: Arrays) -> Offsets:
    """Return sorted offsets as the ledger names them; a topic must be of one incarnation."""
    topics: dict[str, tuple[str, dict[int, Intervals]]] = {}
    for (topic, topic_id, partition), intervals in sorted(spans_from(arrays).items()):
        topics.setdefault(topic, (topic_id, {}))[1][partition] = intervals
    return {topic: TopicOffsets(topic_id=topic_id, partitions=held) for topic, (topic_id, held) in topics.items()}


def _within(quarantined: Arrays, coverage: Offsets) -> Arrays:
    spans = spans_of(coverage)
    return within(quarantined, {key: spans[key] for key in quarantined if key in spans})


def _solid(arrays: Arrays) -> Arrays:
    return {key: offsets for key, offsets in arrays.items() if len(offsets)}
