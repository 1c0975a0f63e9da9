"""A small batch without a Spark job: the driver reads its records from Kafka and decodes them, where both are beyond doubt.

Spark still plans the batch and says its offsets. A pipeline with a transform has none of this: the transform is Spark's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakebound.direct_read import DirectReader, DirectReadRefusedError
from lakebound.ledger import Offsets
from lakebound.spec import PipelineSpec
from lakebound_spark.decode import value_schema
from lakebound_spark.direct_decode import ValueDecoder, make_value_decoder, rows_of_records
from lakebound_spark.observed import Observed

log = logging.getLogger(__name__)

_SPARKS_TURN_SECONDS = 30.0
"""Where one batch was refused the next ones often are, and reading twice costs more than reading by Spark."""

_MORE_THAN_EXPECTED = 2
"""By so much a batch may be larger than what the lane was chosen for; beyond it Spark bounds what comes to the driver."""


@dataclass(frozen=True)
class Taken:
    """A batch's rows, and what was seen of its records."""

    rows: pa.Table
    observed: Observed


class DirectLane:
    """Takes batches until one is refused; then it is Spark's turn for a while."""

    def __init__(self, reader: DirectReader, decode: ValueDecoder, topic_ids: Mapping[str, str]) -> None:
        self._reader = reader
        self._decode = decode
        self._topic_ids = topic_ids
        self._not_before = 0.0

    def take(self, offsets: Offsets) -> Taken | None:
        """Return the batch's rows, or None where Spark is to read it."""
        if time.monotonic() < self._not_before:
            return None
        try:
            records = self._reader.read(offsets)
            rows = rows_of_records(records, self._decode(records), self._topic_ids)
        except DirectReadRefusedError as exc:
            log.info("Spark reads this batch and those of the next %.0f s: %s", _SPARKS_TURN_SECONDS, exc)
            self._not_before = time.monotonic() + _SPARKS_TURN_SECONDS
            self._reader.close()
            return None
        stamps = records.timestamps_ms
        observed = Observed(
            read=len(records),
            bad=0,
            value_bytes=sum(len(value or b"") for value in records.values),
            timestamps_ms=(min(stamps), max(stamps)) if stamps else None,
            bad_offsets=None,
            bad_rows=None,
        )
        return Taken(rows, observed)

    def close(self) -> None:
        """Disconnect."""
        self._reader.close()


def make_direct_lane(spec: PipelineSpec, topic_ids: Mapping[str, str], unhoused: Collection[str]) -> DirectLane | None:
    """Return the pipeline's direct lane, or None where only Spark can do what it asks for.

    Args:
        spec: The pipeline.
        topic_ids: Every row will carry its topic's id.
        unhoused: Fields of the schema for which a table has no column; only Spark's decoder looks for them.
    """
    if not spec.driver_lane.direct or spec.transform is not None or unhoused:
        return None
    decode = make_value_decoder(spec, value_schema(spec))
    if decode is None:
        return None
    reader = DirectReader(spec.connection, spec.pipeline, max_bytes=_MORE_THAN_EXPECTED * spec.driver_lane.max_bytes)
    return DirectLane(reader, decode, topic_ids)
