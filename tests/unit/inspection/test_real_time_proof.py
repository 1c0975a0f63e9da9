"""A topic that was written in real time: rows count once, and only as far as the ledger tells."""

from __future__ import annotations

import pyarrow as pa

from lakebound.inspection.proof.real_time import sent_at_least_once
from lakebound.ledger.entry import Offsets, TopicOffsets

COVERAGE: Offsets = {"src": TopicOffsets(topic_id="id", partitions={0: ((0, 3),), 1: ((0, 1),)})}


def rows(*places: tuple[str | None, int | None, int | None, int | None]) -> pa.Table:
    columns = dict(zip(("topic", "partition", "offset", "ordinal"), zip(*places, strict=True), strict=True))
    ids = ["id" if topic else None for topic in columns["topic"]]
    return pa.table({**{name: pa.array(values) for name, values in columns.items()}, "topic_id": pa.array(ids, pa.string())})


def test_copies_count_once_and_are_told() -> None:
    once, note = sent_at_least_once(rows(("src", 0, 1, 0), ("src", 0, 1, 0), ("src", 0, 1, 1), ("src", 1, 0, 0)), COVERAGE)
    assert sorted((r["partition"], r["offset"], r["ordinal"]) for r in once.to_pylist()) == [(0, 1, 0), (0, 1, 1), (1, 0, 0)]
    assert note is not None and note.startswith("1 messages are there again")


def test_rows_after_the_newest_entry_are_not_judged_and_foreign_ones_are() -> None:
    once, note = sent_at_least_once(rows(("src", 0, 3, 0), ("src", 1, 7, 0), (None, None, None, None)), COVERAGE)
    assert (once.num_rows, once["topic"].to_pylist(), note) == (1, [None], None)
