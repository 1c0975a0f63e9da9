"""Records on which a pipeline's transform raises: they are found by halving, and go to quarantine; the others land.

The parts are evaluated as Spark's lanes evaluate a batch, wherever the records were read: a filter may keep a record from the
function that raises on it, and does so only in such a plan. What they give is thrown away: the transform then runs once on all
records that are left, so that the rows are those of one batch.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakebound.control.progress import SearchProgress
from lakebound.errors import TransformFailsError
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch.halving import TooManyFoundError, halved
from lakebound_spark.batch.local_relation import LocalRelations
from lakebound_spark.batch.quiet_spark import without_quotes
from lakebound_spark.batch.raised import Raised, raised_on_values, without_values
from lakebound_spark.batch.row_writer import KEY_FIELDS
from lakebound_spark.batch.session_settings import SETTINGS_LOCK
from lakebound_spark.batch.transform import Transform

log = logging.getLogger(__name__)

RAISED = "transform"
"""Their reason in the quarantine."""
MOST_HELD = 4_096
"""Records of which one search is made. A larger batch lands in pieces, so that an end waits for no more than a piece."""
MOST_FOUND = 100
"""Records of one batch that are looked for, or a tenth of it: each takes 6 to 20 evaluations."""
SAMPLED = 16
"""Records of a batch that are tried one by one before all others: where none of them is taken, no search is worth its time."""
FEW = 8
"""Where the transform raises on more records than these, and took none in between, it is the transform that is wrong."""

PLACES = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("problem", pa.string())],
)

_RULES = "spark.sql.optimizer.excludedRules"
_FOLDING = tuple(
    f"org.apache.spark.sql.catalyst.optimizer.{rule}" for rule in ("ConvertToLocalRelation", "PropagateEmptyRelation")
)
"""They evaluate a local relation before filters are pushed down, and leave out what is joined with an empty one."""


class InPiecesError(Exception):
    """The transform raises on a record of a batch that is too large for one search."""


class SearchEndedError(Exception):
    """The search was given up, because nobody wants its batch any more: nothing of it is to be committed."""


class RaisingRecords:
    """Finds them in the batches of one pipeline. ``in_a_row`` landed in quarantine since the transform last took a record.

    ``tell`` hears of each part of a batch that was tried; ``goes_on`` is asked before each whether the search is still wanted.
    """

    def __init__(self, spec: PipelineSpec, transform: Transform, schema: StructType) -> None:
        """Search nothing yet.

        Args:
            spec: The pipeline.
            transform: Its function.
            schema: Of the function's input (``lakebound_spark.batch.transform.planned_input``).
        """
        self._spec = spec
        self._transform = transform
        self._schema = schema
        self._relation = LocalRelations(schema)
        self.in_a_row = 0
        self.tell: Callable[[SearchProgress], None] = lambda found: None
        self.goes_on: Callable[[], bool] = lambda: True

    def search(self, size: int, most: int | None = None, limit_seconds: float | None = None) -> Search:
        """Return a search of one batch.

        Args:
            size: Number of its offsets.
            most: Number of records that are looked for; None leaves it to the size.
            limit_seconds: How long it may take; None: as long as it takes.
        """
        if most is None:
            return Search(self, self._spec, size, max(MOST_FOUND, size // 10), SAMPLED, limit_seconds)
        return Search(self, self._spec, size, most, limit_seconds=limit_seconds)

    def landed(self, taken: int, raised: int) -> None:
        """Note that a batch has landed.

        Args:
            taken: Number of records that the transform got and took; tombstones that are skipped say nothing of it.
            raised: Number of those that went to quarantine because the transform raises on them.
        """
        self.in_a_row = 0 if taken else self.in_a_row + raised

    def wrong_with(self, session: SparkSession, rows: pa.Table) -> Raised | None:
        """Return what the transform raises on decoded records; None where it takes them.

        Args:
            session: Spark's.
            rows: The decoded records; may be none.

        Raises:
            Exception: It raises something that no record is to blame for.
        """
        frame = self._relation(session, rows) if rows.num_rows else session.createDataFrame([], self._schema)
        try:
            evaluate(self._transform(frame))
        except (PySparkException, Py4JJavaError) as exc:
            raised = raised_on_values(exc)
            if raised is None:
                raise
            return raised
        return None


@dataclass(frozen=True)
class FirstRaised:
    """The first record on which a search saw the transform raise.

    Attributes:
        place: Topic, partition and offset.
        raised: With the values of the record: for the terminal of the person who asked, and no message.
        text: What messages say of it.
    """

    place: str
    raised: Raised
    text: str


class Search:
    """The search in one batch, slice after slice. ``found`` is the number of records on which the transform raises."""

    def __init__(
        self,
        records: RaisingRecords,
        spec: PipelineSpec,
        size: int,
        most: int,
        samples: int = 0,
        limit_seconds: float | None = None,
    ) -> None:
        self._records = records
        self._spec = spec
        self._size = size
        self._most = most
        self._samples = samples
        self._looked_at = 0
        self._limit_seconds = limit_seconds
        self._ends_at = None if limit_seconds is None else time.monotonic() + limit_seconds
        self.first: FirstRaised | None = None
        self._since: float | None = None
        self._tried = 0
        self._singles = set[int]()
        self.found = 0

    def passed(self, count: int) -> None:
        """Note that the transform took a slice of so many records."""
        self._looked_at += count

    def check_size(self) -> None:
        """Check that the batch is not too large for a search.

        Raises:
            InPiecesError: It is to be landed in pieces.
        """
        if self._size > MOST_HELD:
            raise InPiecesError

    def among(self, session: SparkSession, rows: pa.Table) -> pa.Table:
        """Return topic, partition, offset and problem of the records on which the transform raises.

        There is none where it raises on no record, on an empty batch, too, or only on several records together.

        Args:
            session: That of the batch.
            rows: A slice of decoded records, with ``_kafka``.

        Raises:
            TransformFailsError: There are more than are looked for, or than are found in time.
            SearchEndedError: The search is not wanted any more.
            Exception: The transform raises something that no record is to blame for.
        """
        # Before the first part, which takes seconds in a JVM that has just started: it must not be taken for a stall.
        self._tell()
        with as_in_batches(session), without_quotes(session):
            try:
                if self._records.wrong_with(session, rows.slice(0, 0)) is not None:
                    return PLACES.empty_table()
                self._check_sample(session, rows)
                raised = halved(rows.num_rows, partial(self._try, session, rows), self._most - self.found)
            except TooManyFoundError as exc:
                raise self._error(f"more than {self._most} records of a batch of {self._size}") from exc
            finally:
                self._tell(is_over=True)
        places = _places(rows, raised)
        self._looked_at += rows.num_rows
        self.found += places.num_rows
        self._singles.clear()
        return places

    def _check_sample(self, session: SparkSession, rows: pa.Table) -> None:
        """Check that the transform takes one of some records, which lie apart from each other.

        Raises:
            TransformFailsError: It takes none of them.
        """
        if not self._samples or rows.num_rows < 2 * self._samples:
            return
        at = np.linspace(0, rows.num_rows - 1, self._samples).astype(int).tolist()
        if all(self._try(session, rows, one, one + 1) is not None for one in at):
            raise self._error(f"each of {self._samples} records that were sampled of {rows.num_rows}, of a batch")

    def _try(self, session: SparkSession, rows: pa.Table, first: int, end: int) -> Raised | None:
        """Return what the transform raises on a part of the records, and note it of a single one."""
        if not self._records.goes_on():
            raise SearchEndedError
        raised = self._records.wrong_with(session, rows.slice(first, end - first))
        self._tried += 1
        if raised is not None and end - first == 1:
            [record] = rows.slice(first, 1).to_pylist()
            kafka = record.pop(KAFKA_COLUMN)
            place = "/".join(str(kafka[name]) for name in KEY_FIELDS)
            self._singles.add(first)
            if self.first is None:
                self.first = FirstRaised(place, raised, without_values(raised.text, record))
        self._tell()
        self._check_time()
        return raised

    def _check_time(self) -> None:
        """Give the search up when its time has passed and a record is known."""
        if self.first is not None and self._ends_at is not None and time.monotonic() > self._ends_at:
            found = self.found + len(self._singles)
            raise self._error(f"{found} or more of {self._size} records (the search ended after {self._limit_seconds:.0f} s)")

    def _tell(self, *, is_over: bool = False) -> None:
        now = time.time()
        self._since = self._since or now
        found = self.found + len(self._singles)
        self._records.tell(
            SearchProgress(
                since=self._since, changed_at=now, records=self._size, tried=self._tried, found=found, is_over=is_over
            )
        )

    def end(self) -> None:
        """Judge the whole batch.

        Raises:
            TransformFailsError: The transform raises on each of its records, and on all since it last took one, and they are
                more than a few.
        """
        if self.found and self.found == self._looked_at and self.found + self._records.in_a_row > FEW:
            before = f", and on the {self._records.in_a_row} before it" if self._records.in_a_row else ""
            raise self._error(f"all {self.found} records of a batch{before}")
        if self.found:
            log.warning("the transform raises on %d of a batch's records; they go to quarantine", self.found)

    def _error(self, how_many: str) -> TransformFailsError:
        first = self.first
        told = (None, None, None) if first is None else (first.raised.kind, first.place, first.text)
        return TransformFailsError(self._spec.pipeline, self._spec.transform or "", how_many, *told)


def evaluate(output: DataFrame) -> None:
    """Compute all columns of all rows, and keep none."""
    output.write.format("noop").mode("overwrite").save()


def _places(rows: pa.Table, raised: dict[int, Raised]) -> pa.Table:
    if not raised:
        return PLACES.empty_table()
    at = sorted(raised)
    kafka = rows[KAFKA_COLUMN].take(at).combine_chunks()
    problems = [f"{RAISED}\t{raised[position].text}" for position in at]
    columns = [kafka.field(name) for name in KEY_FIELDS]
    return pa.table([*columns, problems], names=PLACES.names).cast(PLACES)


def positions(rows: pa.Table, places: pa.Table) -> list[int]:
    """Return the positions of the records that stand among the places.

    Args:
        rows: Decoded records, with ``_kafka``.
        places: With topic, partition and offset.
    """
    wanted = set(keys_of(places))
    kafka = rows[KAFKA_COLUMN].combine_chunks()
    found = keys_of(pa.table([kafka.field(name) for name in KEY_FIELDS], names=list(KEY_FIELDS)))
    return [position for position, key in enumerate(found) if key in wanted]


def keys_of(places: pa.Table) -> list[tuple[Any, ...]]:
    """Return topic, partition and offset of each row."""
    return list(zip(*(places[name].to_pylist() for name in KEY_FIELDS), strict=True))


def others(count: int, positions: Sequence[int]) -> list[int]:
    """Return the positions below ``count`` that are not among these."""
    left: list[int] = np.setdiff1d(np.arange(count), positions).tolist()
    return left


@contextmanager
def as_in_batches(session: SparkSession) -> Iterator[None]:
    """Have Spark plan local relations as it plans what it reads."""
    with SETTINGS_LOCK:
        before = session.conf.get(_RULES, "") or ""
        session.conf.set(_RULES, ",".join([*filter(None, [before]), *_FOLDING]))
    try:
        yield
    finally:
        with SETTINGS_LOCK:
            session.conf.set(_RULES, before) if before else session.conf.unset(_RULES)
