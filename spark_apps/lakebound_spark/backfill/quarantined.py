"""One piece of a release: quarantined bytes are decoded with the schema of today, transformed, and written as data files."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound import faults
from lakebound.inspection.proof.offset_arrays import Arrays
from lakebound.landing.table_settling import check_unmoved
from lakebound.operations.release.candidates import offsets_in
from lakebound.operations.release.orders import ReleaseOrders
from lakebound.operations.release.reading import read_records
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.table import Table
from lakebound_spark.backfill.planning import plan_on_tables
from lakebound_spark.batch.decode import PROBLEM, SKIPPED, Decoder, good_columns
from lakebound_spark.batch.failing_records import PLACES, RaisingRecords, evaluate
from lakebound_spark.batch.lane_choice import LaneChooser
from lakebound_spark.batch.lanes import ResultTooLargeError, WrittenBy, collect, write_by_cluster, write_by_driver
from lakebound_spark.batch.raised import raised_on_values
from lakebound_spark.batch.record_format import value_fields
from lakebound_spark.batch.rescue import kafka_headers
from lakebound_spark.batch.row_writer import Written
from lakebound_spark.batch.transform import KAFKA_SCHEMA
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.reference.book import open_book

_MOST_FOUND = 1_000
"""Records of a piece on which the transform raises that are looked for; nothing waits for a release."""
_PLACE = ("topic", "partition", "offset")


@dataclass(frozen=True)
class Released:
    """What became of a piece.

    Attributes:
        read: Records that were tried.
        fits: Their offsets that can be landed, or that today's pipeline drops.
        verdicts: By the reason that stands in the quarantine: how many ``fit``, and how many ``stay``.
        written: Files of the rows.
        written_by: Who wrote these.
    """

    read: int
    fits: Arrays
    verdicts: dict[str, Counter[str]]
    written: Written
    written_by: WrittenBy


class QuarantinedRecords:
    """Decodes pieces for the tables of one pipeline."""

    def __init__(self, orders: ReleaseOrders, session: SparkSession, tables: Sequence[Table]) -> None:
        self._orders = orders
        self._session = session
        self._references = open_book(session, orders.spec, orders.places)
        found = plan_on_tables(session, orders, self._references, with_quarantine=False)
        self._planned, self._schemas, self._settled = found.planned, found.schemas, found.settled
        self._spec, self.left_out = self._planned.spec, found.left_out
        self._assembly = Assembly(
            self._planned,
            topic_ids={},
            layouts=[table.layout() for table in tables],
            unhoused=self._settled.unhoused,
            left_out=self._settled.left_out,
        )
        self._kept: list[DataFrame] = []

    def decode(self, wanted: Arrays, tables: list[Table], *, write: bool) -> Released:
        """Return what fits of the wanted offsets, with the files of its rows in the tables' folders.

        Args:
            wanted: Offsets of quarantined records.
            tables: Where the rows go.
            write: Whether files are written; a trial writes none.
        """
        places, reasons = self._orders.places, self._orders.reasons
        records = _first_of_each(read_records(self._spec.quarantine_table, places, wanted, reasons, copies=False))
        ids = {topic: topic_id for topic, topic_id, _ in wanted}
        decoded = self._decoded(self._assembly.decoder_of(ids), self._frame(records))
        fitting = _fitting(decoded, records)
        faults.reach("after_trim")
        written_by: WrittenBy = "driver"
        written = Written({}, 0, 0)
        if write and fitting.num_rows:
            written, written_by = self._write(self._planned.transform(good_columns(decoded)), tables, records)
            faults.reach("after_data_files", written_by)
        return Released(records.num_rows, offsets_in(fitting), _verdicts(records, fitting), written, written_by)

    def _decoded(self, decoder: Decoder, frame: DataFrame) -> DataFrame:
        """Return the decoded records; those whose rows cannot land, or cannot even be made, have a problem."""
        decoded, transform = self._keep(decoder.decode(frame)), self._planned.transform
        if self._assembly.raising is not None:
            raised = self._raising_records(good_columns(decoded), self._assembly.raising)
            if raised.num_rows:
                decoder = decoder.refusing(raised)
                decoded = self._keep(decoder.decode(frame))
        if not self._assembly.check.is_needed:
            return decoded
        refused = self._assembly.check.places(transform(good_columns(decoded)))
        return self._keep(decoder.refusing(refused).decode(frame)) if refused.num_rows else decoded

    def _raising_records(self, good: DataFrame, raising: RaisingRecords) -> pa.Table:
        """Return topic, partition, offset and problem of the records on which the transform raises.

        Each record was bad before: so the whole piece is evaluated, for a trial, too, and all of them may stay.
        """
        try:
            evaluate(self._planned.transform(good))
        except (PySparkException, Py4JJavaError) as exc:
            if raised_on_values(exc) is None:
                raise
            held = collect(good)
            found = raising.search(held.num_rows, _MOST_FOUND).among(self._session, held)
            if not found.num_rows:
                raise
            return found
        return PLACES.empty_table()

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist())
        return frame

    def check_columns(self) -> None:
        """Check that the tables have the columns still with which the records are decoded.

        Raises:
            SchemaChangedError: They cannot take what it gives any more.
            ColumnsMovedError: They have others now.
        """
        check_unmoved(self._spec, self._orders.places, self._schemas, self._settled, value_fields(self._spec))

    def reference_versions(self) -> Mapping[str, str]:
        """Return the versions of the reference data that the transform reads, by name."""
        return self._references.versions()

    def forget(self) -> None:
        """Free what is kept of the pieces."""
        while self._kept:
            self._kept.pop().unpersist()

    def _frame(self, records: pa.Table) -> DataFrame:
        """Return the records with Kafka's own columns."""
        columns = {name: records[name] for name in ("key", "value", "topic", "partition", "offset", "timestamp")}
        columns["timestampType"] = pa.array(np.zeros(records.num_rows, dtype=np.int32))
        columns["headers"] = kafka_headers(records["headers"].combine_chunks())
        # In one chunk: createDataFrame of PySpark 4.1.3 loses all rows behind an empty one.
        return self._session.createDataFrame(pa.table(columns).combine_chunks(), KAFKA_SCHEMA)

    def _write(self, output: DataFrame, tables: list[Table], records: pa.Table) -> tuple[Written, WrittenBy]:
        tag, how = f"release-{uuid.uuid4().hex[:8]}", self._assembly.how
        width = records["value"].nbytes / records.num_rows
        if LaneChooser(self._spec.driver_lane, bytes_per_record=width).choose(records.num_rows) == "driver":
            try:
                return write_by_driver(output, tables, tag, how), "driver"
            except ResultTooLargeError:
                tag = f"{tag}-c"
        return write_by_cluster(output, tables, tag, how), "cluster"


def _fitting(decoded: DataFrame, records: pa.Table) -> pa.Table:
    """Return the records without a problem, or which the pipeline now skips."""
    fits = F.col(PROBLEM).isNull() | (F.col(PROBLEM) == SKIPPED)
    places = decoded.where(fits).select(*(F.col(f"{KAFKA_COLUMN}.{name}").alias(name) for name in _PLACE)).toArrow()
    found = pa.table({name: places[name].cast(records.schema.field(name).type) for name in _PLACE})
    return records.select(["topic", "topic_id", "partition", "offset", "reason"]).join(
        found, list(_PLACE), join_type="left semi"
    )


def _first_of_each(records: pa.Table) -> pa.Table:
    """Return one record per offset, whatever else stands in the quarantine."""
    numbered = records.append_column("_row", pa.array(np.arange(records.num_rows)))
    first = numbered.group_by(list(_PLACE)).aggregate([("_row", "min")])["_row_min"]
    return records.take(pc.take(first, pc.sort_indices(first)))


def _verdicts(records: pa.Table, fitting: pa.Table) -> dict[str, Counter[str]]:
    tried = Counter(records["reason"].to_pylist())
    fit = Counter(fitting["reason"].to_pylist())
    return {reason: Counter(fit=fit[reason], stay=number - fit[reason]) for reason, number in tried.items()}
