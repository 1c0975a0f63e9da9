"""A plan that is kept gives what the function would have given, and is kept only where two calls have made the same of it."""

from __future__ import annotations

import itertools
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.transform_functions import FUNCTIONS, NOT_KEPT, ORDERED, SHORT, records
from tests.support.tables.kept_function import KeptFunction
from tests.support.tables.transform_worlds import few_rows_by_jobs, pipeline, sent
from tests.support.tables.value_lanes import IDS

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound_spark.batch import kept_plan
from lakebound_spark.batch.decoded_rows import row_decoder
from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.transform import Transform, planned_input

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

NUMBERS = StructType().add("id", "long").add("n", "integer")
SLICES = 5
APART = 100
"""Offsets between the first records of two slices: so a row's offset says of which slice it is."""


class Counted:
    """A function, and how often it was called."""

    def __init__(self, function: Transform) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, frame: DataFrame) -> DataFrame:
        self.calls += 1
        return self.function(frame)


@dataclass
class Slices:
    """Of one schema, with other rows in each.

    Attributes:
        each: As a local relation, and as a scan.
        together: All their rows, as a local relation.
    """

    each: list[tuple[DataFrame, DataFrame]]
    together: DataFrame


@pytest.fixture(scope="module")
def slices(session: SparkSession) -> Slices:
    spec = pipeline()
    decode = row_decoder(spec, IDS)
    relation = LocalRelations(planned_input(session, spec).schema, may_scan=True)
    made, rows_of_slices = [], []
    for number in range(SLICES):
        columns = sent(number * APART, [*records(random.Random(number), 10 + number)]).records
        rows = decode(columns).rows
        with few_rows_by_jobs():
            scan = relation(session, rows)
        made.append((relation(session, rows), scan))
        rows_of_slices.append(rows)
    return Slices(made, relation(session, pa.concat_tables(rows_of_slices)))


def numbers(session: SparkSession, first: int = 0) -> DataFrame:
    rows = pa.table({"id": pa.array(range(first, first + 3), pa.int64()), "n": pa.array([1, 2, 3], pa.int32())})
    return LocalRelations(NUMBERS)(session, rows)


def rows_of(frame: DataFrame, *, ordered: bool = True) -> list[str]:
    found = [repr(row) for row in arrow_of(frame).to_pylist()]
    return found if ordered else sorted(found)


@pytest.mark.parametrize("function", FUNCTIONS if LONG_FORM else SHORT, ids=lambda function: function.__name__)
def test_each_slice_gives_what_the_function_gives(slices: Slices, function: Transform) -> None:
    counted = Counted(function)
    keeper = KeptFunction(counted, dict, monotonic=lambda: 0.0)
    ordered = function in ORDERED
    # What the function gives of one record does not depend on others: one query says it of all slices.
    wanted: list[list[str]] = [[] for _ in range(SLICES)]
    for row in arrow_of(function(slices.together)).to_pylist():
        wanted[row[KAFKA_COLUMN]["offset"] // APART].append(repr(row))
    # Two scans first, whose plan is kept; then both in turn.
    for number, (relation, scan) in enumerate(slices.each):
        given = scan if number in (0, 1, 3) else relation
        expected = wanted[number] if ordered else sorted(wanted[number])
        assert rows_of(keeper(given), ordered=ordered) == expected, number
    assert counted.calls == (SLICES if function in NOT_KEPT else 2)


def test_a_plan_is_as_old_as_two_seconds(session: SparkSession) -> None:
    clock = Clock()
    counted = Counted(lambda frame: frame.withColumn("day", F.lit(clock.day)))
    keeper = KeptFunction(counted, dict, monotonic=clock, beside=without_a_thread)
    seen = []
    for clock.now, clock.day in ((0.0, 1), (0.1, 1), (1.9, 2), (2.2, 2), (2.3, 2), (4.2, 2), (4.5, 2)):
        seen.append((arrow_of(keeper(numbers(session)))["day"][0].as_py(), counted.calls))
    # Of another plan than before, the next call says whether it was by chance.
    assert seen == [(1, 1), (1, 2), (1, 2), (2, 3), (2, 4), (2, 4), (2, 5)]


def without_a_thread(session: SparkSession, work: Callable[[], Any]) -> Future[Any]:
    """Begin nothing: the batches must call the function themselves."""
    future: Future[Any] = Future()
    future.set_exception(RuntimeError("can't start new thread"))
    return future


class Later:
    """Begins work when the test says so."""

    def __init__(self) -> None:
        self.begun: list[tuple[Future[Any], Callable[[], Any]]] = []

    def __call__(self, session: SparkSession, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self.begun.append((future, work))
        return future

    def end(self) -> None:
        """Do what was begun."""
        for future, work in self.begun:
            try:
                future.set_result(work())
            except Exception as exc:
                future.set_exception(exc)
        self.begun.clear()


def test_a_plan_is_renewed_beside_the_batches_which_go_on_with_the_one_before(session: SparkSession) -> None:
    clock, later = Clock(), Later()
    counted = Counted(lambda frame: frame.withColumn("day", F.lit(clock.day)))
    keeper = KeptFunction(counted, dict, monotonic=clock, beside=later)

    def day(now: float) -> int:
        clock.now = now
        return int(arrow_of(keeper(numbers(session)))["day"][0].as_py())

    assert [day(now) for now in (0.0, 0.1, 1.6, 1.7, 1.8)] == [0] * 5
    assert (counted.calls, len(later.begun)) == (2, 1), "one renewal, and the batches do not wait"
    later.end()
    assert [day(now) for now in (1.9, 2.2, 3.4)] == [0] * 3 and counted.calls == 3, "it is as old as its call"
    assert len(later.begun) == 1
    clock.day = 1
    later.end()
    assert [day(3.5), day(3.6)] == [1, 1] and counted.calls == 5, "another plan: a call in a batch says whether by chance"


def test_a_renewal_that_fails_leaves_the_error_to_the_batch_that_needs_the_function(session: SparkSession) -> None:
    clock, later, wrong = Clock(), Later(), [False]

    def function(frame: DataFrame) -> DataFrame:
        if wrong[0]:
            raise ValueError("no such table")
        return frame.where("id >= 0")

    keeper = KeptFunction(function, dict, monotonic=clock, beside=later)
    for clock.now in (0.0, 0.1, 1.6):
        assert arrow_of(keeper(numbers(session))).num_rows == 3
    wrong[0] = True
    later.end()
    with pytest.raises(ValueError, match="no such table"):
        keeper(numbers(session))
    wrong[0] = False
    assert arrow_of(keeper(numbers(session))).num_rows == 3


@pytest.mark.parametrize("comes", ["before the call", "after the call", "and the one before again"])
def test_a_renewal_with_other_reference_data_is_not_used(session: SparkSession, comes: str) -> None:
    clock, later, version = Clock(), Later(), ["a"]
    counted = Counted(lambda frame: frame.withColumn("name", F.lit(version[0])))
    keeper = KeptFunction(counted, lambda: {"names": version[0]}, monotonic=clock, beside=later)

    def name(now: float) -> str:
        clock.now = now
        return str(arrow_of(keeper(numbers(session)))["name"][0].as_py())

    assert [name(now) for now in (0.0, 0.1, 1.6)] == ["a"] * 3
    if comes == "after the call":
        later.end()
    version[0] = "b"
    if comes == "and the one before again":
        later.end()
        version[0] = "a"
        assert [name(now) for now in (1.7, 1.75, 1.8)] == ["a"] * 3
        return
    assert [name(now) for now in (1.7, 1.75, 1.8, 1.85)] == ["b"] * 4
    later.end()
    assert [name(now) for now in (1.9, 1.95)] == ["b"] * 2


def test_a_plan_of_newer_reference_data_is_not_kept_as_one_of_older(session: SparkSession) -> None:
    """Where the function has read none of them, the plan is the same, and only the versions say that there are newer ones."""
    clock, later, version = Clock(), Later(), ["a"]

    def function(frame: DataFrame) -> DataFrame:
        if later.begun:
            version[0] = "b"
        return frame.where("id >= 0")

    keeper = KeptFunction(function, lambda: {"names": version[0]}, monotonic=clock, beside=later)
    for clock.now in (0.0, 0.1, 1.6):
        keeper(numbers(session))
    before = keeper._known
    assert before is not None and before.is_sure
    renewed = keeper._renewed(before, numbers(session), by_job=False)
    assert not renewed.is_sure and renewed.of == before.of


def test_a_renewal_for_which_there_is_no_thread_leaves_the_call_to_the_next_batch(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    clock, counted = Clock(), Counted(lambda frame: frame.where("id >= 0"))
    keeper = KeptFunction(counted, dict, monotonic=clock)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        for clock.now in (0.0, 0.1, 1.6):
            assert arrow_of(keeper(numbers(session))).num_rows == 3
    for clock.now, calls in ((1.7, 3), (1.8, 3)):
        assert arrow_of(keeper(numbers(session))).num_rows == 3 and counted.calls == calls


def test_a_renewal_sees_the_session_of_the_batch(session: SparkSession) -> None:
    clock, other, seen = Clock(), session.newSession(), list[str]()

    def function(frame: DataFrame) -> DataFrame:
        if threading.current_thread() is not threading.main_thread():
            active: Any = SparkSession._get_j_spark_session_class(session._jvm).getActiveSession().get()
            seen.append(str(active.sessionUUID()))
        return frame.where("id >= 0")

    keeper = KeptFunction(function, dict, monotonic=clock)
    # The last one finds the first renewal, and does not need the next.
    for clock.now in (0.0, 0.1, 1.6, 2.5):
        assert arrow_of(keeper(numbers(other))).num_rows == 3
    of_others: Any = other._jsparkSession
    assert set(seen) == {str(of_others.sessionUUID())}


class Clock:
    """A clock of seconds, and a calendar."""

    now = 0.0
    day = 0

    def __call__(self) -> float:
        return self.now


def test_a_function_whose_plan_differs_each_time_is_called_each_time(session: SparkSession) -> None:
    count = itertools.count()
    counted = Counted(lambda frame: frame.withColumn("call", F.lit(next(count))))
    keeper = KeptFunction(counted, dict, monotonic=lambda: 0.0)
    for number in range(6):
        assert set(arrow_of(keeper(numbers(session)))["call"].to_pylist()) == {number}


def test_other_reference_data_and_another_session_call_it_anew(session: SparkSession) -> None:
    tables, in_use = {name: session.createDataFrame([(1, name)], "n INT, name STRING") for name in "ab"}, ["a"]
    counted = Counted(lambda frame: frame.join(F.broadcast(tables[in_use[0]]), "n"))
    keeper = KeptFunction(counted, lambda: {"names": in_use[0]}, monotonic=lambda: 0.0)

    def names(frame: DataFrame) -> Iterator[str]:
        yield from arrow_of(keeper(frame))["name"].to_pylist()

    assert [*itertools.chain(*(names(numbers(session, first)) for first in range(4)))] == ["a"] * 4 and counted.calls == 2
    in_use[0] = "b"
    assert [*itertools.chain(*(names(numbers(session, first)) for first in range(4)))] == ["b"] * 4 and counted.calls == 4
    other = session.newSession()
    assert [*names(numbers(other))] == ["b"] and counted.calls == 5


@pytest.mark.parametrize("reads_twice", ["join", "union", "subquery"])
def test_a_function_that_reads_the_records_twice_gets_the_same_ones(session: SparkSession, reads_twice: str) -> None:
    def twice(frame: DataFrame) -> DataFrame:
        if reads_twice == "join":
            return frame.join(frame.select("id"), "id")
        if reads_twice == "union":
            return frame.unionAll(frame)
        return frame.sparkSession.sql("select * from {r} where id >= (select min(id) from {r})", r=frame)

    keeper = KeptFunction(twice, dict, monotonic=lambda: 0.0)
    for first in range(0, 12, 3):
        assert set(arrow_of(keeper(numbers(session, first)))["id"].to_pylist()) == {first, first + 1, first + 2}


@pytest.fixture
def names(session: SparkSession, tmp_path: Path) -> Path:
    """A table of two files: one number has no name, one has two."""
    path = tmp_path / "names"
    rows = session.createDataFrame([(1, "one"), (2, "two"), (2, "deux"), (None, "nothing")], "n INT, name STRING")
    rows.repartition(2).write.parquet(str(path))
    return path


JOINS = {
    "inner": lambda frame, table: frame.join(F.broadcast(table), "n"),
    "left": lambda frame, table: frame.join(table, "n", "left"),
    "right": lambda frame, table: F.broadcast(table).join(frame, "n", "right"),
    "null-safe": lambda frame, table: frame.join(table.alias("t"), frame["n"].eqNullSafe(table["n"]), "left").drop(table["n"]),
    "anti": lambda frame, table: frame.join(F.broadcast(table), "n", "left_anti").withColumn("name", F.lit("none")),
    "two": lambda frame, table: (
        frame.join(table.where("n = 1"), "n", "left")
        .withColumnRenamed("name", "first")
        .join(table.groupBy("n").agg(F.max("name").alias("name")), "n", "left")
    ),
    "of a range": lambda frame, table: frame.join(table.withColumnRenamed("n", "m"), F.col("n") <= F.col("m"), "left").drop(
        "m"
    ),
}


@pytest.mark.parametrize("kind", JOINS if LONG_FORM else ("right", "two"))
def test_a_small_table_is_read_once_in_two_seconds(session: SparkSession, names: Path, kind: str) -> None:
    def joined(frame: DataFrame) -> DataFrame:
        return JOINS[kind](frame, frame.sparkSession.read.schema("n INT, name STRING").parquet(str(names)))

    clock = Clock()
    keeper = KeptFunction(joined, dict, monotonic=clock)
    expected = [rows_of(joined(numbers(session, first)), ordered=False) for first in range(4)]
    assert [rows_of(keeper(numbers(session, first)), ordered=False) for first in range(3)] == expected[:3]
    shutil.rmtree(names)
    assert rows_of(keeper(numbers(session, 3)), ordered=False) == expected[3]
    clock.now = 2.5
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        keeper(numbers(session, 4))


def test_what_a_table_says_now_is_seen_after_two_seconds(session: SparkSession, names: Path) -> None:
    def joined(frame: DataFrame) -> DataFrame:
        return frame.join(frame.sparkSession.read.parquet(str(names)), "n")

    def found() -> set[str]:
        return set(arrow_of(keeper(numbers(session)))["name"].to_pylist())

    clock = Clock()
    keeper = KeptFunction(joined, dict, monotonic=clock)
    assert [found() for _ in range(3)] == [{"one", "two", "deux"}] * 3
    session.createDataFrame([(1, "uno")], "n INT, name STRING").write.mode("overwrite").parquet(str(names))
    clock.now = 2.1
    assert [found() for _ in range(4)] == [{"uno"}] * 4


@pytest.mark.parametrize("why", ["large", "long", "raises"] if LONG_FORM else ["long", "raises"])
def test_a_table_that_cannot_be_read_before_is_read_for_each_slice(
    session: SparkSession, names: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "large":
        monkeypatch.setattr(kept_plan, "_LARGEST_TABLE_BYTES", 10)
    if why == "long":
        monkeypatch.setattr(kept_plan, "_MOST_TABLE_ROWS", 3)

    def joined(frame: DataFrame) -> DataFrame:
        table = frame.sparkSession.read.parquet(str(names))
        if why == "raises":
            table = table.select(F.col("n").cast("int"), F.col("name").cast("int").alias("name"))
        return frame.join(F.broadcast(table), "n", "left")

    keeper = KeptFunction(joined, dict, monotonic=lambda: 0.0)
    for first in range(4):
        if why == "raises":
            with pytest.raises(Exception, match="CAST_INVALID_INPUT"):
                arrow_of(keeper(numbers(session, first)))
        else:
            assert rows_of(keeper(numbers(session, first)), ordered=False) == rows_of(
                joined(numbers(session, first)), ordered=False
            )
    shutil.rmtree(names)
    with pytest.raises(Exception, match=r"FILE_NOT_EXIST|PATH_NOT_FOUND|FAILED_READ_FILE|does not exist"):
        arrow_of(keeper(numbers(session)))
