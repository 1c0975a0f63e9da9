"""A batch without a Spark job: the driver reads its records from Kafka and decodes them, where both are beyond doubt.

Spark still plans the batch and says its offsets. A pipeline with a transform has none of this: the transform is Spark's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from lakebound.landing.direct_read import DirectReader, DirectReadRefusedError, RecordColumns
from lakebound.ledger.entry import Offsets
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.decode import value_schema
from lakebound_spark.batch.direct_decode import ValueDecoder, make_value_decoder, rows_of_records
from lakebound_spark.batch.landable import FIRST_MS, LAST_MS, LandableCheck
from lakebound_spark.batch.observed import Observed
from lakebound_spark.batch.row_writer import RowWriter

log = logging.getLogger(__name__)

Timed = Callable[[str], AbstractContextManager[None]]

_SPARKS_TURN_SECONDS = 30.0
"""Where one batch was refused the next ones often are, and reading twice costs more than reading by Spark."""


class DirectLane:
    """Reads batches until one is refused; then it is Spark's turn for a while."""

    def __init__(self, reader: DirectReader, decode: ValueDecoder, topic_ids: Mapping[str, str], check: LandableCheck) -> None:
        self._reader = reader
        self._decode = decode
        self._topic_ids = topic_ids
        self._check = check
        self._not_before = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it is not Spark's turn."""
        return time.monotonic() >= self._not_before

    def write(self, offsets: Offsets, writer: RowWriter, timed: Timed) -> Observed | None:
        """Give the batch's rows to the writer, slice by slice; return what was seen, or None where Spark is to read it.

        Args:
            offsets: Of the batch.
            writer: Gets the rows; what it got before a refusal is not to be kept.
            timed: Notes how long each step took.
        """
        seen = _Seen()
        try:
            slices = self._reader.read(offsets)
            while True:
                with timed("direct_read"):
                    records = next(slices, None)
                if records is None:
                    return seen.observed()
                with timed("direct_decode"):
                    rows = rows_of_records(records, self._decode(records), self._topic_ids)
                    if not self._check.holds(rows):
                        raise DirectReadRefusedError("a record cannot land")
                with timed("direct_write"):
                    writer.write(rows)
                seen.add(records)
        except DirectReadRefusedError as exc:
            log.info("Spark reads this batch and those of the next %.0f s: %s", _SPARKS_TURN_SECONDS, exc)
            self._not_before = time.monotonic() + _SPARKS_TURN_SECONDS
            self._reader.close()
            return None

    def close(self) -> None:
        """Disconnect."""
        self._reader.close()


def make_direct_lane(
    spec: PipelineSpec, topic_ids: Mapping[str, str], unhoused: Collection[str], check: LandableCheck
) -> DirectLane | None:
    """Return the pipeline's direct lane, or None where only Spark can do what it asks for.

    Args:
        spec: The pipeline.
        topic_ids: Every row will carry its topic's id.
        unhoused: Fields of the schema for which a table has no column; only Spark's decoder looks for them.
        check: Finds what cannot land; Spark then says which records it is.
    """
    if not spec.driver_lane.direct or spec.transform is not None or unhoused:
        return None
    decode = make_value_decoder(spec, value_schema(spec))
    if decode is None:
        return None
    return DirectLane(DirectReader(spec.connection, spec.pipeline), decode, topic_ids, check)


@dataclass
class _Seen:
    """What was seen of the slices so far."""

    read: int = 0
    value_bytes: int = 0
    timestamps_ms: tuple[int, int] | None = None

    def add(self, records: RecordColumns) -> None:
        if not len(records):
            return
        self.read += len(records)
        self.value_bytes += sum(len(value or b"") for value in records.values)
        known = [stamp for stamp in records.timestamps_ms if FIRST_MS <= stamp <= LAST_MS]
        stamps = (*known, *(self.timestamps_ms or ()))
        self.timestamps_ms = (min(stamps), max(stamps)) if stamps else None

    def observed(self) -> Observed:
        return Observed(
            read=self.read,
            bad=0,
            value_bytes=self.value_bytes,
            timestamps_ms=self.timestamps_ms,
            bad_offsets=None,
            bad_rows=None,
        )
