"""The rows of closed windows in each table, compared with those that Kafka's records give now. Writes nothing."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from lakebound.errors import LakeboundError
from lakebound.inspection.proof.windows import ComparedWindows
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.closed_windows import ClosedWindows, closed_windows
from lakebound.ledger.entry import Entry
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.spec.times import in_utc
from lakebound.tables.contents import Selection, contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from lakebound_spark.batch.window_plan import window_column
from lakebound_spark.check.window_rows import closed_rows, missed_windows
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.parts import SessionParts, plan_pipeline

_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 200
_READINGS = 5
Digests = Counter[bytes]
"""How often a row is there, by its digest: a table of windows may have millions."""


class NotComparedError(LakeboundError):
    """The rows of a table cannot be compared."""


@dataclass(frozen=True)
class WindowRows:
    """The columns of a table without ``_kafka``, as they are compared.

    Attributes:
        spec: The table.
        places: Where it is.
        made: Names of the columns that the transform makes.
        column: That says of which window a row is; None where none does.
    """

    spec: TableSpec
    places: Places
    made: frozenset[str]
    column: str | None

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema([field for field in open_table(self.spec, self.places).schema() if field.name in self.made])

    def newest(self, topic: str) -> Entry:
        """Return the entry that counts.

        Raises:
            NotComparedError: No window has landed.
        """
        table = open_table(self.spec, self.places)
        entry = table.read_ledger().entry if table.exists() else None
        if entry is None or entry.windows is None or topic not in entry.coverage:
            raise NotComparedError("it has landed no window yet")
        return entry

    def read(self, after_ms: int | None, until_ms: int | None = None) -> Iterator[pa.Table]:
        """Yield the rows of windows that end after a time, and until another one, as far as a column says it."""
        for batch in contents_of(self.spec, self.places).rows(Selection(("ordinal",), self.schema.names)):
            rows = self.fitted(pa.Table.from_batches([batch]))
            if self.column is not None and (after_ms, until_ms) != (None, None):
                end_us = pc.struct_field(rows[self.column].combine_chunks(), "end").cast(pa.int64())
                rows = rows.filter(pc.greater(end_us, (after_ms or 0) * 1000))
                if until_ms is not None:
                    end_us = pc.struct_field(rows[self.column].combine_chunks(), "end").cast(pa.int64())
                    rows = rows.filter(pc.less_equal(end_us, until_ms * 1000))
            yield rows

    def fitted(self, rows: pa.Table) -> pa.Table:
        """Return rows with the table's columns and types."""
        return rows.select(self.schema.names).cast(self.schema)


def compare_tables(session: SparkSession, run: RunSpec, tables: Sequence[str]) -> dict[str, ComparedWindows]:
    """Return what the rows of closed windows say, by the table's id. A stream may run meanwhile.

    Args:
        session: Spark's.
        run: The orders of a pipeline with state.
        tables: Ids of the tables.

    Raises:
        LakeboundError: Kafka does not answer, or the transform cannot be planned.
    """
    spec, [topic] = run.spec, run.spec.topics
    planned, kafka = plan_pipeline(session, spec), KafkaFacts(spec.connection)
    is_compacted = kafka.written_settings([topic])[topic].is_compacted
    comparison = _Comparison(run, planned, kafka.topics([topic])[topic], is_compacted=is_compacted)
    return {one.id: comparison.of(one) for one in spec.tables if one.id in tables}


class _Comparison:
    """Compares tables; the windows are computed once where two tables stand at the same batch."""

    def __init__(self, run: RunSpec, planned: SessionParts, facts: TopicFacts, *, is_compacted: bool) -> None:
        self._run, self._planned, self._facts, self._is_compacted = run, planned, facts, is_compacted
        self._made: dict[tuple[int, int | None], pa.Table] = {}

    def of(self, one: TableSpec) -> ComparedWindows:
        """Compare a table."""
        made_columns = frozenset(self._planned.rows.columns) - {KAFKA_COLUMN}
        rows = WindowRows(one, self._run.places.read_only(), made_columns, window_column(self._planned.rows))
        try:
            serial, which, landed = self._read(rows)
            made = self._computed(serial, which)
        except LakeboundError as exc:
            return ComparedWindows(not_compared=str(exc))
        return compared(rows, which, made, landed)

    def _read(self, rows: WindowRows) -> tuple[int, ClosedWindows, Digests]:
        """Read the ledger and the rows of one version: a stream may commit in between.

        What it commits then are rows of windows that end later. So where a column says when a window ends, the second reading
        takes the rows of the windows that were closed when it began.
        """
        [topic] = self._run.spec.topics
        for reading in range(_READINGS):
            entry = rows.newest(topic)
            which = self._which(rows, entry)
            by_column = reading > 0 and rows.column is not None
            landed = digests(rows.read(which.after_ms, which.until_ms if by_column else None))
            assert entry.windows is not None
            if by_column or rows.newest(topic).windows == entry.windows:
                return entry.windows.serial, which, landed
        raise NotComparedError("its stream commits all the time; hold the pipeline for the proof")

    def _which(self, rows: WindowRows, entry: Entry) -> ClosedWindows:
        [topic] = self._run.spec.topics
        covered, state = entry.coverage[topic], entry.windows
        if self._is_compacted:
            raise NotComparedError(f"Kafka compacts {topic}, so it does not have all records")
        if covered.topic_id != self._facts.topic_id:
            raise NotComparedError("the topic was deleted and created again since")
        assert state is not None
        if state.id != self._planned.window_id:
            raise NotComparedError(
                "the aggregation on disk (transform, null_values or the schema of records) is not the one that made the rows"
            )
        if state.rows_id != self._planned.rows_id(self._run.source.hash):
            raise NotComparedError("the code on disk has landed no windows yet: the rows are those of the code before it")
        first = {partition: intervals[0][0] for partition, intervals in covered.partitions.items() if intervals}
        told = (found.entry.windows for found in open_table(rows.spec, rows.places).entries())
        which = closed_windows(first, [state, *(one for one in told if one is not None)], self._facts.earliest)
        if which is None:
            reason = "Kafka no longer has all records of any closed window"
            if state.rows_since_ms is not None:
                reason += f" that ends after {in_utc(state.rows_since_ms)}, from when on the code on disk makes the rows"
            raise NotComparedError(reason)
        return which

    def _computed(self, serial: int, which: ClosedWindows) -> pa.Table:
        key = serial, which.after_ms
        if key not in self._made:
            [topic] = self._run.spec.topics
            assembly = Assembly(self._planned, {topic: self._facts.topic_id})
            self._made[key] = closed_rows(assembly, which, missed_windows(self._run, which))
        return self._made[key]


def compared(rows: WindowRows, which: ClosedWindows, made: pa.Table, landed: Digests) -> ComparedWindows:
    """Return what two sets of rows say.

    Args:
        rows: The table.
        which: The windows.
        made: What Kafka's records give.
        landed: What the table has.
    """
    computed = digests([rows.fitted(made)])
    one_way = which.after_ms is not None and rows.column is None
    missing, surplus = computed - landed, Digests() if one_way else landed - computed
    examples = [f"missing from the table: {text}" for text in _texts([rows.fitted(made)], missing)]
    examples += [f"only in the table: {text}" for text in _texts(rows.read(which.after_ms), surplus)]
    return ComparedWindows(
        rows=landed.total(),
        computed=computed.total(),
        missing=missing.total(),
        surplus=surplus.total(),
        examples=tuple(examples),
        after_ms=which.after_ms,
        until_ms=which.until_ms,
        one_way=one_way,
    )


def digests(parts: Iterable[pa.Table]) -> Digests:
    """Return how often each row is there."""
    return Digests(_digest(row) for part in parts for row in _rows_of(part))


def _texts(parts: Iterable[pa.Table], wanted: Digests) -> Iterator[str]:
    """Yield a few of some rows as text."""
    left = _EXAMPLES if wanted else 0
    for part in parts if left else ():
        names = part.column_names
        for row in _rows_of(part):
            if left and _digest(row) in wanted:
                left -= 1
                text = ", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))
                yield text[:_EXAMPLE_CHARACTERS]
        if not left:
            return


def _rows_of(part: pa.Table) -> Iterator[tuple[object, ...]]:
    for batch in part.to_batches():
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _digest(row: tuple[object, ...]) -> bytes:
    # Which of 0.0 and -0.0 an aggregate keeps depends on the order of the records: they are equal.
    row = tuple(value + 0.0 if type(value) is float else value for value in row)
    return hashlib.blake2b(repr(row).encode(errors="backslashreplace"), digest_size=16).digest()
