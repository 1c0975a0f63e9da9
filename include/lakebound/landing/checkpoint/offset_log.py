"""What Spark writes of a batch before it runs it: which offsets it reads."""

from __future__ import annotations

import json
from pathlib import Path

from lakebound.errors import LakeboundError
from lakebound.ledger.marks import NextOffsets

"""Per topic and partition, an offset."""


class UnreadableOffsetLogError(LakeboundError):
    """An offset log file is not what Spark writes."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"offset log {path}: {reason}; the application starts again from the ledger")


def parse_source_offsets(text: str) -> NextOffsets:
    """Return the offsets that Spark's Kafka source writes as JSON.

    Raises:
        ValueError: It is no JSON, or holds what is no number.
        AttributeError: It is of another form.
    """
    return {topic: {int(p): int(o) for p, o in partitions.items()} for topic, partitions in json.loads(text).items()}


def read_offset_log(checkpoint: Path, batch: int) -> NextOffsets:
    """Return the end offsets (exclusive) of a batch, which Spark wrote before it ran the batch.

    The file holds a version line, a line of metadata, and one line per source; a Lakebound query has one Kafka source.

    Raises:
        UnreadableOffsetLogError: The file is not there or not of that form.
    """
    path = checkpoint / "offsets" / str(batch)
    try:
        lines = path.read_text().splitlines()
        if lines[0] != "v1" or len(lines) != 3:
            raise UnreadableOffsetLogError(path, f"expected version v1 and one source, found {lines[0]!r} and {len(lines) - 2}")
        return parse_source_offsets(lines[2])
    except (OSError, ValueError, IndexError, AttributeError) as exc:
        raise UnreadableOffsetLogError(path, str(exc)) from exc
