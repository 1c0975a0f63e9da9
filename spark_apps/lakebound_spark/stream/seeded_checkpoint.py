"""A fresh checkpoint in which Spark finds a batch that was planned: with these ends, and this watermark.

Spark takes a batch that stands in ``offsets`` and not in ``commits`` for one to be run. So a start chooses where a batch with
state ends, and with which watermark it runs (docs/decisions/0044). ``offsets/N`` needs every setting that this Spark would
write: without one of them it silently takes another format of the state.
"""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from lakebound.errors import LakeboundError
from lakebound.ledger.windows import Ends

_PARTITIONS = "spark.sql.shuffle.partitions"


class SeedError(LakeboundError):
    """Spark's checkpoint is of another form than the one that is known: open windows cannot be rebuilt."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"checkpoint file {path}: {reason}; nothing was landed. Use the version of Spark that is locked")


def seed_batch(session: SparkSession, checkpoint: Path, batch: int, topic: str, ends: Ends, watermark_ms: int) -> None:
    """Write a batch as planned.

    Args:
        session: Spark's, with the settings of the query.
        checkpoint: The query's folder; fresh for batch 0, and for the next one as batch 0 has left it.
        batch: Its number.
        topic: The query's only topic.
        ends: Offset after the last one, by partition.
        watermark_ms: With which it is to run.
    """
    offsets = checkpoint / "offsets"
    offsets.mkdir(mode=0o700, parents=True, exist_ok=True)
    if batch == 0:
        (checkpoint / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    told = json.dumps({topic: {str(partition): end for partition, end in sorted(ends.items())}})
    (offsets / str(batch)).write_text(f"v1\n{_settings(session, watermark_ms)}\n{told}")


def next_watermark_ms(checkpoint: Path, batch: int) -> int:
    """Return the watermark with which Spark is to run the batch after this one, as its log of commits says.

    Raises:
        SeedError: It says nothing.
    """
    path = checkpoint / "commits" / str(batch)
    try:
        return int(json.loads(path.read_text().splitlines()[1])["nextBatchWatermarkMs"])
    except (OSError, ValueError, IndexError, KeyError, TypeError) as exc:
        raise SeedError(path, f"it does not say the next watermark ({exc})") from exc


def _settings(session: SparkSession, watermark_ms: int) -> str:
    jvm: Any = session._jvm
    kind = jvm.org.apache.spark.sql.execution.streaming.checkpointing.OffsetSeqMetadata
    body = json.loads(kind.apply(watermark_ms, int(time.time() * 1000), session._jsparkSession.conf()).json())
    # Spark notes this one by a setting that only the session of a running stream has; outside it is null.
    body["conf"][_PARTITIONS] = session.conf.get(_PARTITIONS)
    return json.dumps(body)
