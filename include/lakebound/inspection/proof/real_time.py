"""Rows of a topic that was written in real time: each is asked for once, and only as far as the ledger tells. Pure."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.ledger.entry import Offsets, high_water_marks

_PLACE = ["topic", "topic_id", "partition", "offset", "ordinal"]


def sent_at_least_once(rows: pa.Table, coverage: Offsets) -> tuple[pa.Table, str | None]:
    """Return the rows, each once, and how many were sent again, in words; None where none was.

    Rows of the time after the newest entry are left out: a running stream tells of them at the end of its epoch, and after a
    crash they are sent again.

    Args:
        rows: Where messages come from, as ``TopicTarget.scan_sources`` gives it.
        coverage: That of the ledger, read before the rows.
    """
    told = rows.filter(pc.fill_null(_is_told(rows, coverage), True))
    once = told.select(_PLACE).group_by(_PLACE).aggregate([])
    again = told.num_rows - once.num_rows
    note = f"messages sent more than once: {again}; this is normal in real time (at least once)" if again else None
    return once.select(_PLACE), note


def _is_told(rows: pa.Table, coverage: Offsets) -> pa.ChunkedArray:
    told = pa.chunked_array([pa.nulls(rows.num_rows, pa.bool_())])
    for topic, partitions in high_water_marks(coverage).items():
        of_topic = pc.equal(rows["topic"], topic)
        for partition, mark in partitions.items():
            here = pc.and_(of_topic, pc.equal(rows["partition"], partition))
            told = pc.if_else(pc.fill_null(here, False), pc.less(rows["offset"], mark), told)
    return told
