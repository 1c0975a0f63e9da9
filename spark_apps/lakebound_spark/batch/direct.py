"""A batch that the driver reads from Kafka and decodes.

Spark still plans the batch and says its offsets. A pipeline's transform is Spark's, too: it gets the decoded records, slice by
slice (``lakebound_spark.batch.local_transform``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from lakebound.errors import TransformFailsError
from lakebound.formats.headers import headers_array
from lakebound.formats.room import in_parts
from lakebound.formats.times import FIRST_MS, LAST_MS
from lakebound.landing.direct_read import SLICE_RECORDS, DirectReader, DirectReadRefusedError, RecordColumns
from lakebound.ledger.entry import Offsets, count
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch.ahead import ahead
from lakebound_spark.batch.decoded_rows import DecodedRows, RowDecoder
from lakebound_spark.batch.failing_records import (
    InPiecesError,
    RaisingRecords,
    Search,
    SearchEndedError,
    as_in_batches,
    keys_of,
    others,
    positions,
)
from lakebound_spark.batch.landable import LandableCheck
from lakebound_spark.batch.raised import raised_on_values
from lakebound_spark.batch.row_writer import RowWriter
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.seen_records import Observed

log = logging.getLogger(__name__)

Timed = Callable[[str], AbstractContextManager[None]]
TransformHeld = Callable[[SparkSession, pa.Table], pa.Table]
"""What a transform makes of rows that the driver holds (``lakebound_spark.batch.local_transform``)."""

_SPARKS_TURN_SECONDS = 30.0
"""Where one batch was refused the next ones often are, and reading twice costs more than reading by Spark."""

MOST_BAD = 4_096
"""Of one slice. Where there are more, Spark's lanes decode the batch, on all cores, and its executors write what is bad."""
_MOST_BAD_BYTES = 64 * 1024 * 1024
"""Of one batch: unlike its rows, its bad records are held until its end; so are the keys of its tombstones."""


class DirectLane:
    """Reads batches until one is refused; then it is Spark's turn for a while."""

    def __init__(
        self,
        reader: DirectReader,
        decode: RowDecoder,
        check: LandableCheck,
        transform: TransformHeld | None = None,
        raising: RaisingRecords | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            reader: Of the pipeline's topics.
            decode: Makes rows of their records.
            check: Finds what cannot land.
            transform: The pipeline's; None without one.
            raising: Finds records on which the transform raises; without it Spark's lanes do.
        """
        self._reader = reader
        self._decode = decode
        self._check = check
        self._transform = transform
        self._raising = raising
        self._not_before = 0.0

    @property
    def is_open(self) -> bool:
        """Whether it is not Spark's turn."""
        return time.monotonic() >= self._not_before

    def write(self, offsets: Offsets, session: SparkSession, writer: RowWriter, timed: Timed) -> Observed | None:
        """Give the batch's rows to the writer, slice by slice; return what was seen, or None where Spark is to read it.

        Args:
            offsets: Of the batch.
            session: Spark's of this batch.
            writer: Gets the rows; what it got before a refusal is not to be kept.
            timed: Notes how long each step took.

        Raises:
            InPiecesError: The transform raises on a record, and the batch is too large to look for it.
            TransformFailsError: The transform raises on too many records.
        """
        seen = _Seen()
        search = self._search(offsets)
        try:
            with closing(self._slices(offsets, timed)) as slices:
                for one in slices:
                    seen.add(one.records, one.made)
                    rows, raised = self._transformed(session, one.made.rows, one.records, search, timed)
                    seen.add_bad(raised)
                    if not rows.num_rows:
                        continue
                    if not self._check.holds(rows):
                        raise DirectReadRefusedError("a record cannot land")
                    with timed("direct_write"):
                        writer.write(rows)
            if search is not None:
                search.end()
            return seen.observed()
        except InPiecesError:
            self._reader.close()  # The pieces begin before what it has read ahead.
            raise
        except DirectReadRefusedError as exc:
            log.info("Spark reads this batch and those of the next %.0f s: %s", _SPARKS_TURN_SECONDS, exc)
            self._not_before = time.monotonic() + _SPARKS_TURN_SECONDS
            self._reader.close()
            return None

    def arrived(self, position: NextOffsets, wait_seconds: float) -> NextOffsets | None:
        """Return the next offsets after what has come of each partition; None where Kafka refuses it.

        Args:
            position: Next offset to read of every partition.
            wait_seconds: How long to wait where nothing has come.
        """
        starts = {(topic, partition): start for topic, starts in position.items() for partition, start in starts.items()}
        try:
            found = self._reader.arrived(starts, wait_seconds)
        except DirectReadRefusedError as exc:
            log.info("Spark asks for what comes: %s", exc)
            return None
        return {topic: {p: found[topic, p] for p in partitions} for topic, partitions in position.items()}

    def close(self) -> None:
        """Disconnect."""
        self._reader.close()

    def _search(self, offsets: Offsets) -> Search | None:
        return self._raising.search(count(offsets)) if self._raising is not None else None

    def _transformed(
        self, session: SparkSession, rows: pa.Table, records: RecordColumns, search: Search | None, timed: Timed
    ) -> tuple[pa.Table, pa.Table | None]:
        """Return what the transform makes of a slice, and records on which it raises as rows of the quarantine table."""
        if self._transform is None or not rows.num_rows:
            return rows, None
        try:
            with timed("direct_transform"):
                made = self._transform(session, rows)
        except Exception as exc:
            if search is None or raised_on_values(exc) is None:
                raise DirectReadRefusedError(f"the transform raises {type(exc).__name__} on what the driver read") from exc
            made = self._made_as_in_batches(session, rows, timed)
        if made is not None:
            if search is not None:
                search.passed(rows.num_rows)
            return made, None
        assert search is not None
        search.check_size()
        with timed("isolate"), _refused_where_it_raises("the transform"):
            places = search.among(session, rows)
        at = positions(rows, places)
        bad = _quarantine_rows(rows.take(at), places, records) if at else None
        left = rows.take(pa.array(others(rows.num_rows, at), pa.int64()))
        if not left.num_rows:
            return left, bad
        with timed("direct_transform"), _refused_where_it_raises("the transform"), as_in_batches(session):
            made = self._transform(session, left)
        return made, bad

    def _made_as_in_batches(self, session: SparkSession, rows: pa.Table, timed: Timed) -> pa.Table | None:
        """Return what the transform makes of a slice where filters are pushed down first; None where it raises on values."""
        assert self._transform is not None
        try:
            with timed("direct_transform"), as_in_batches(session):
                return self._transform(session, rows)
        except Exception as exc:
            if raised_on_values(exc) is None:
                raise DirectReadRefusedError(f"the transform raises {type(exc).__name__} on what the driver read") from exc
            return None

    def _slices(self, offsets: Offsets, timed: Timed) -> Generator[_Slice]:
        """Yield what is read and decoded; of a large batch the next slice meanwhile, whose steps lie beside the others then."""
        slices = self._decoded_slices(offsets, timed)
        return ahead(slices) if count(offsets) > SLICE_RECORDS else slices

    def _decoded_slices(self, offsets: Offsets, timed: Timed) -> Generator[_Slice]:
        slices = self._reader.read(offsets)
        while True:
            with timed("direct_read"):
                records = next(slices, None)
            if records is None:
                return
            if len(records):
                for one in in_parts(len(records), partial(self._decoded, records, timed)):
                    if one.made.bad.num_rows > MOST_BAD:
                        raise DirectReadRefusedError(f"more than {MOST_BAD} records of {len(one.records)} are bad")
                    yield one

    def _decoded(self, records: RecordColumns, timed: Timed, places: range) -> _Slice:
        some = records if len(places) == len(records) else records.at(places)
        with timed("direct_decode"):
            return _Slice(some, self._decode(some))


@contextmanager
def _refused_where_it_raises(what: str) -> Iterator[None]:
    """Leave the batch to Spark's lanes, whatever Spark raises of rows that the driver holds.

    They do the same with the same records, and say what is wrong: so it is the same in each lane. Only the number of records
    on which a transform raises is judged where they are looked for.
    """
    try:
        yield
    except (TransformFailsError, SearchEndedError):
        raise
    except Exception as exc:
        raise DirectReadRefusedError(f"{what} raises {type(exc).__name__} on what the driver read") from exc


def _quarantine_rows(rows: pa.Table, places: pa.Table, records: RecordColumns) -> pa.Table:
    """Return decoded records on which the transform raises as rows of the quarantine table.

    Args:
        rows: The records, with ``_kafka``, in the order of the places.
        places: With what is wrong.
        records: The slice that they are of.
    """
    wanted = keys_of(places)
    looked_for = {*wanted}
    found = zip(records.topics, records.partitions, records.offsets, strict=True)
    at = {key: position for position, key in enumerate(found) if key in looked_for}
    held = records.at([at[key] for key in wanted])
    told = [problem.partition("\t") for problem in places["problem"].to_pylist()]
    columns = [rows[KAFKA_COLUMN], [one[0] for one in told], [one[2] for one in told], held.keys, held.values]
    return pa.table([*columns, headers_array(held.headers())], names=QUARANTINE_SCHEMA.names).cast(QUARANTINE_SCHEMA)


@dataclass(frozen=True)
class _Slice:
    """Records, and what the driver's decoder made of them."""

    records: RecordColumns
    made: DecodedRows


@dataclass
class _Seen:
    """What was seen of the slices so far."""

    read: int = 0
    skipped: int = 0
    value_bytes: int = 0
    timestamps_ms: tuple[int, int] | None = None
    bad: list[pa.Table] = field(default_factory=list)
    skipped_rows: list[pa.Table] = field(default_factory=list)

    def add(self, records: RecordColumns, made: DecodedRows) -> None:
        self.add_bad(made.bad)
        self._add_skipped(made.skipped)
        self.read += len(records)
        self.skipped += len(records) - made.rows.num_rows - made.bad.num_rows
        # Without a Python call per record: a backlog's slices are read meanwhile.
        self.value_bytes += sum(map(len, filter(None, records.values)))
        stamps = np.array(records.timestamps_ms, dtype=np.int64)
        known = stamps[(stamps >= FIRST_MS) & (stamps <= LAST_MS)]
        if known.size:
            seen = (int(known.min()), int(known.max()), *(self.timestamps_ms or ()))
            self.timestamps_ms = (min(seen), max(seen))

    def add_bad(self, bad: pa.Table | None) -> None:
        if bad is not None and bad.num_rows:
            self.bad.append(bad)
            if sum(table.nbytes for table in self.bad) > _MOST_BAD_BYTES:
                raise DirectReadRefusedError("its bad records are more than the driver holds at once")

    def _add_skipped(self, skipped: pa.Table | None) -> None:
        if skipped is not None:
            self.skipped_rows.append(skipped)
            if sum(table.nbytes for table in self.skipped_rows) > _MOST_BAD_BYTES:
                raise DirectReadRefusedError("its tombstones are more than the driver holds at once")

    def observed(self) -> Observed:
        return Observed(
            read=self.read,
            bad=sum(table.num_rows for table in self.bad),
            skipped=self.skipped,
            value_bytes=self.value_bytes,
            timestamps_ms=self.timestamps_ms,
            bad_offsets=None,
            bad_rows=pa.concat_tables(self.bad) if self.bad else None,
            skipped_rows=pa.concat_tables(self.skipped_rows) if self.skipped_rows else None,
        )
