"""One pipeline per lane, whose batches are landed by the application's own lander in real tables, without a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession

from lakebound.formats.contract import Headers
from lakebound.formats.headers import headers_array
from lakebound.landing.direct_read import GivenHeaders, RecordColumns
from lakebound.landing.rollup_recorder import Lane
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets, new_commit_id
from lakebound.operations.release.reading import read_places
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.table import open_table
from lakebound.tables.target import LandingTarget
from lakebound_spark.batch.direct import DirectLane
from lakebound_spark.batch.landable import LandableCheck
from lakebound_spark.batch.lane_choice import LaneChooser
from lakebound_spark.batch.quarantine_landing import QuarantineLander
from lakebound_spark.batch.records import Records
from lakebound_spark.batch.rescue import kafka_headers
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Counts, Target, Writer
from lakebound_spark.batch.transform import KAFKA_SCHEMA, Transform, planned_output
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.lander import BatchLander
from lakebound_spark.landing.parts import NoReferences, ReferenceData, SessionParts
from tests.oracle import read_delta, read_iceberg
from tests.support.tables.local_tables import TOPIC, TOPIC_ID, offsets, places

IDS = {TOPIC: TOPIC_ID}


@dataclass(frozen=True)
class Sent:
    """Records of partition 0, of consecutive offsets."""

    first: int
    values: Sequence[bytes | None]
    stamps_ms: Sequence[int]
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers | None] | None = None

    @property
    def end(self) -> int:
        """The offset after the last one."""
        return self.first + len(self.values)

    @property
    def records(self) -> RecordColumns:
        """As the driver's own consumer gives them."""
        count = len(self.values)
        numbers = list(range(self.first, self.end))
        keys = [b"k"] * count if self.keys is None else [*self.keys]
        sources = [GivenHeaders(one or ()) for one in self.headers or ()]
        return RecordColumns([TOPIC] * count, [0] * count, numbers, [*self.stamps_ms], keys, [*self.values], [*sources])

    def frame(self, session: SparkSession) -> DataFrame:
        """As Spark's Kafka source gives them."""
        count = len(self.values)
        columns = {
            "key": pa.array(self.records.keys, pa.binary()),
            "value": pa.array(self.values, pa.binary()),
            "topic": pa.array([TOPIC] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(self.first, self.end), pa.int64()),
            "timestamp": pa.array([stamp * 1000 for stamp in self.stamps_ms], pa.timestamp("us", "UTC")),
            "timestampType": pa.array([0] * count, pa.int32()),
            "headers": kafka_headers(headers_array(self.headers or [None] * count)),
        }
        return session.createDataFrame(pa.table(columns), KAFKA_SCHEMA)


@dataclass
class OneWay:
    """Chooses one way for all batches; the driver's, where Spark has to read them, is to collect."""

    way: Lane

    def choose(self, size: int, *, may_be_direct: bool = False) -> Lane:
        return "driver" if self.way == "direct" and not may_be_direct else self.way

    def learn(self, *_: object) -> None:
        """It has learned."""


@dataclass
class Reader:
    """Gives the driver what was sent, in slices."""

    slices: int
    sent: Sent | None = None

    def read(self, wanted: Offsets) -> Iterator[RecordColumns]:
        sent = self.sent
        assert sent is not None
        [(start, stop)] = wanted[TOPIC].partitions[0]
        assert wanted == offsets(start, stop) and sent.first <= start < stop <= sent.end
        bounds = [start - sent.first + (stop - start) * number // self.slices for number in range(self.slices + 1)]
        for first, end in pairwise(bounds):
            keys, headers = (None if one is None else one[first:end] for one in (sent.keys, sent.headers))
            yield Sent(sent.first + first, sent.values[first:end], sent.stamps_ms[first:end], keys, headers).records

    def close(self) -> None:
        """Holds nothing."""


@dataclass
class LandedRows:
    """What is in the tables of a lane.

    Attributes:
        tables: Per table, the rows by offset.
        bad: The quarantine's rows by offset: reason and error, and the record's bytes.
        raw: The key and headers of these.
    """

    tables: dict[str, dict[int, list[dict[str, Any]]]]
    bad: dict[int, list[tuple[str, str, bytes | None]]]
    raw: dict[int, tuple[bytes | None, list[tuple[str, bytes | None]]]] = field(default_factory=dict)


@dataclass
class LaneWorld:
    """A pipeline with all its batches in one lane. ``others`` are its targets beside the tables, as they stand."""

    session: SparkSession
    folder: Path
    spec: PipelineSpec
    way: Lane
    transform: Transform = field(default=lambda frame: frame)
    has_transform: bool = False
    references: ReferenceData = field(default_factory=NoReferences)
    slices: int = 2
    others: Sequence[LandingTarget] = ()

    def __post_init__(self) -> None:
        self.at = places(self.folder)
        spec = self.spec.model_copy(update={"transform": "a.function"}) if self.has_transform else self.spec
        rows = planned_output(self.session, self.spec, self.transform)
        planned = SessionParts(self.session, spec, self.transform, self.transform, rows, self.references)
        schemas = planned.table_schemas()
        writer = Writer(spec.pipeline, 1, lambda: None, attempts=3, quarantine=spec.quarantine_table.id)
        self.targets = targets = [self._open(one, schemas[one.id], writer) for one in spec.tables]
        targets += [Target(one, one.read_ledger()) for one in self.others]
        quarantine = self._open(spec.quarantine_table, QUARANTINE_SCHEMA, writer)
        assembly = Assembly(planned, IDS, [target.table.layout() for target in targets])
        self.check: LandableCheck = assembly.check
        self._decode = assembly.row_decoder
        self._reader = Reader(self.slices)
        direct = None
        if self.way == "direct":
            direct = DirectLane(self._reader, self._decode, self.check, assembly.local_transform, assembly.raising)  # type: ignore[arg-type]
        bad = QuarantineLander(quarantine, writer, partial(read_places, spec.quarantine_table, self.at))
        self.lander = BatchLander(assembly, targets, bad, writer, direct)
        assert isinstance(self.lander._lanes, LaneChooser), "else each batch would choose its lane by itself"
        self.lander._lanes = OneWay(self.way)  # type: ignore[assignment]
        self.counts = Counts()
        self._batches = 0

    def land(self, sent: Sent, goes_on: Callable[[], bool] = lambda: True) -> set[str]:
        """Land a batch, and return the steps that it took."""
        self._reader.sent = sent
        wanted: Offsets = {TOPIC: TopicOffsets(topic_id=TOPIC_ID, partitions={0: ((sent.first, sent.end),)})}
        self._batches += 1
        records = Records(self.session, wanted, lambda: sent.frame(self.session))
        report = self.lander.land(records, self._batches, wanted, lambda: None, goes_on)
        self.counts = self.counts.plus(report.counts)
        return set(report.durations_ms)

    def is_good(self, value: bytes | None) -> bool:
        """Whether the driver makes a row of a record that can land."""
        rows = self._decode(Sent(0, [value], [0]).records).rows
        return rows.num_rows > 0 and self.check.holds(rows)

    def read(self) -> LandedRows:
        """Return all rows, as readers of the formats' own give them."""
        self.lander.flush()
        tables = {one.id: by_offset(self._rows(one)) for one in self.spec.tables}
        bad: dict[int, list[tuple[str, str, bytes | None]]] = {}
        raw: dict[int, tuple[bytes | None, list[tuple[str, bytes | None]]]] = {}
        for row in self._rows(self.spec.quarantine_table).to_pylist():
            bad.setdefault(row["_kafka"]["offset"], []).append((row["reason"], row["error"], row["value"]))
            raw[row["_kafka"]["offset"]] = row["key"], [(one["name"], one["value"]) for one in row["headers"] or ()]
        return LandedRows(tables, bad, raw)

    def close(self) -> None:
        """Free the threads."""
        self.lander.close()

    def _rows(self, one: TableSpec) -> pa.Table:
        if one.format == "delta":
            return self._delta_rows(one)
        return read_iceberg(self.at.root.path / "iceberg" / "catalog.db", one.namespace, one.short_name)

    def _delta_rows(self, one: TableSpec) -> pa.Table:
        """Read by deltalake's PyArrow; by its DataFusion where the former (1.6.6) fails on a negative decimal in the log."""
        folder = self.at.delta_path(one)
        handle = DeltaTable(str(folder))
        kinds = {field.name: field.type for field in pa.schema(handle.schema().to_arrow())}
        if any(pa.types.is_decimal(kinds[name]) for name in handle.metadata().partition_columns):
            return pa.table(QueryBuilder().register("rows", handle).execute("select * from rows").read_all())
        return read_delta(folder)

    def _open(self, one: TableSpec, schema: pa.Schema, writer: Writer) -> Target:
        table = open_table(one, self.at)
        if not table.exists():
            table.create(schema, Entry(kind="genesis", pipeline=self.spec.pipeline, epoch=1, commit=new_commit_id()))
        return Target(table, table.read_ledger())


def by_offset(rows: pa.Table) -> dict[int, list[dict[str, Any]]]:
    """Return rows by the offset of their record."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["_kafka"]["offset"], []).append(row)
    return found
