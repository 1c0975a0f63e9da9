"""A kept plan is compiled once where that makes no difference; the present time is one of the differences."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from datetime import date, timedelta

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.support.streams.long_form import LONG_FORM

from lakebound_spark.batch import compiled_plan, kept_plan, local_relation
from lakebound_spark.batch.compiled_plan import CompiledPlan
from lakebound_spark.batch.failing_records import as_in_batches
from lakebound_spark.batch.local_transform import LocalTransform
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.spark_objects import spark_objects
from lakebound_spark.batch.transform import Transform

pytestmark = pytest.mark.spark

MANY = 8_000 if LONG_FORM else 1_000
NUMBERS = StructType().add("id", "long").add("s", "string")
COMPILED = {
    "an expression": lambda frame: frame.select("id", F.upper("s").alias("s")),
    "filters between": lambda frame: frame.where("id > 0").withColumn("n", F.col("id") % 3).where("n = 1").drop("n"),
    "json": lambda frame: frame.select("id", F.to_json(F.struct("id", "s")).alias("j")),
    "a field of its own": lambda frame: frame.select(F.struct("id", "s").alias("p")).select("p.id", F.length("p.s").alias("n")),
    "a text that becomes a time": lambda frame: frame.select("id", F.expr("TRY_CAST(s AS TIMESTAMP)").alias("at")),
    "a day": lambda frame: frame.where(F.expr("date_add(date'2026-01-01', INT(id)) > date'2026-01-03'")),
    "a constant": lambda frame: frame.select("id", F.lit(3).alias("three")),
    "a filter alone": lambda frame: frame.where("s RLIKE '[0-9]'"),
    "a condition that is null": lambda frame: frame.where("length(s) > 6").select("s"),
    "a value of each kind": lambda frame: frame.select(
        F.when(F.col("id") % 2 == 0, F.struct("id", "s")).alias("struct"),
        F.array("s", F.upper("s")).alias("array"),
        F.expr("map(id, s, id + 1, 'x')").alias("map"),
        F.expr("CAST(id AS DECIMAL(38, 18)) / 7").alias("decimal"),
        F.expr("timestamp_micros(id)").alias("at"),
        F.expr("CAST(s AS BINARY)").alias("bytes"),
        F.expr("CAST(NULL AS STRING)").alias("none"),
    ).where("decimal >= 0"),
    "nothing is left": lambda frame: frame.where(F.lit(False)),
}
PRESENT = (
    "current_timestamp()",
    "now()",
    "localtimestamp()",
    "current_date()",
    "curdate()",
    "unix_timestamp()",
    "current_time()",
    "date_add(current_date(), 1)",
    "year(now()) + id",
    "CASE WHEN current_timestamp() > timestamp'2000-01-01' THEN s END",
    "CAST('now' AS TIMESTAMP)",
    "CAST(concat('to', 'day') AS DATE)",
    "TRY_CAST('tomorrow' AS DATE)",
    "CAST('now' AS TIMESTAMP_NTZ)",
    "to_timestamp('now')",
    "to_date('today')",
    "timestamp_millis(id) > 'yesterday'",
    "date_diff('today', timestamp_millis(id))",
    "date_trunc('DAY', 'now')",
    "CAST('08:00:00' AS TIMESTAMP)",
    "date_format(CAST('T08:00' AS TIMESTAMP), 'yyyy')",
)
PLANNED = {
    "an explode": lambda frame: frame.select("id", F.explode(F.split("s", "")).alias("c")),
    "a function in Python": lambda frame: frame.select("id", F.udf(lambda s: s, "string")("s").alias("s")),
    "a join": lambda frame: frame.join(frame.sparkSession.range(3).toDF("m"), F.expr("id <= m")),
}


MAPS = (
    "str_to_map(concat('a:1,', s, ':2'), ',', ':')",
    "map_from_entries(array(struct('a' AS k, id AS v), struct(s AS k, id AS v)))",
    "map_concat(map('a', id), map(s, id))",
    "map('a', id, s, id)",
    "map_from_arrays(array('a', s), array(id, id))",
    "transform_keys(map('a', id, s || '_', id), (k, v) -> substring(k, 1, 1))",
    "transform(array(s), x -> str_to_map('a:1,' || x || ':2', ',', ':'))",
)
HOURS = (
    "CAST(CASE WHEN id > 1 THEN '08:00' ELSE '09:00' END AS TIMESTAMP)",
    "CAST(IF(s IS NULL, '08:00', s) AS TIMESTAMP)",
    "CAST(array('08:00', '17:00') AS ARRAY<TIMESTAMP>)",
    "from_json('{\"a\": \"08:00\"}', 'a TIMESTAMP').a",
)
YESTERDAY = date(2026, 1, 1)


def found_in_a_table(frame: DataFrame) -> DataFrame:
    table = frame.sparkSession.range(3).selectExpr("id AS k", "concat('name ', CAST(id AS STRING)) AS name")
    joined = frame.join(F.broadcast(table), F.col("id") == F.col("k"))
    return joined.where("length(name) > 2 AND length(name) < 9").selectExpr("id", "upper(name) AS n")


GUARDED = {
    "filters": lambda frame: (
        frame.where("id <> 0").where("10 / id > 1").where("10 / id < 6").select("id", F.lower("s").alias("s"))
    ),
    "a projection": lambda frame: frame.selectExpr("id", "id <> 0 AND 10 / id > 1 AND 10 / id < 6 AS ok"),
    "a filter and a projection": lambda frame: frame.where("id <> 0").selectExpr("10 / id AS x").where("x > 1 AND x < 6"),
    "a lookup": found_in_a_table,
}


def at_once(session: SparkSession, work: Callable[[], object]) -> Future[object]:
    future: Future[object] = Future()
    future.set_result(work())
    return future


def no_memory(part: bytes) -> None:
    raise MemoryError


def texts(*values: str | None, first: int = 0) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + len(values)), pa.int64()), "s": pa.array(values, pa.string())})


def rows(first: int, count: int = 4) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [None if i % 5 == 3 else f"text {i}" for i in ids]})


def plan_of(
    session: SparkSession, function: Transform, given: pa.Table | None = None
) -> tuple[LocalTransform, CompiledPlan | None]:
    """Return a transform whose plan is kept, and what Spark evaluates it by."""
    keeper = PlanKeeper(function, dict, monotonic=lambda: 0.0)
    transform = LocalTransform(keeper, NUMBERS)
    for first in range(3):
        transform(session, given or rows(first))
    assert keeper._known is not None and keeper._known.with_tables is not None, "it is not kept"
    return transform, keeper._known.with_tables.compiled


def by_spark(session: SparkSession, function: Transform, given: pa.Table) -> list[dict[str, object]]:
    frame = session.createDataFrame(given.to_pylist(), NUMBERS)
    rows: list[dict[str, object]] = function(frame).toArrow().to_pylist()
    return rows


def first_number(row: dict[str, object]) -> int:
    """Return the first number in a row: in many functions the record's id, be it in a text."""
    found = re.search("[0-9]+", repr(row))
    assert found is not None, row
    return int(found.group())


def by_spark_of_each(
    session: SparkSession,
    function: Transform,
    slices: list[pa.Table],
    id_of: Callable[[dict[str, object]], int] = first_number,
) -> list[list[dict[str, object]]]:
    """Return what the function gives of each slice, by one query: of a record it gives the same whatever the others are.

    Args:
        session: Spark's.
        function: Filters and projections.
        slices: No id comes twice in them.
        id_of: Returns the id of the record that a row is of.
    """
    slice_of = {number: at for at, given in enumerate(slices) for number in given["id"].to_pylist()}
    assert len(slice_of) == sum(given.num_rows for given in slices), "a row must say of which slice it is"
    made: list[list[dict[str, object]]] = [[] for _ in slices]
    # A column that has only nulls in one slice has no type there.
    for row in by_spark(session, function, pa.concat_tables(slices, promote_options="default")):
        made[slice_of[id_of(row)]].append(row)
    return made


@pytest.mark.parametrize("name", COMPILED if LONG_FORM else list(COMPILED)[::2])
def test_projections_and_filters_are_compiled_and_give_what_the_function_gives(session: SparkSession, name: str) -> None:
    transform, compiled = plan_of(session, COMPILED[name])
    assert (compiled is not None) or name == "nothing is left"
    slices = [rows(first, count) for first, count in ((0, 9), (20, 0), (23, 1), (30, 200), (300, MANY))]
    wanted = by_spark_of_each(session, COMPILED[name], slices)
    for number, given in enumerate(slices):
        assert transform(session, given).to_pylist() == wanted[number], number


def test_many_rows_go_through_the_compiled_plan_without_a_job(session: SparkSession) -> None:
    transform, compiled = plan_of(session, lambda frame: frame.where("id % 3 = 1").select("id", F.upper("s").alias("s")))
    assert compiled is not None
    context, given = session.sparkContext, rows(0, 40_000)
    context.setJobGroup("many rows", "")
    made = transform(session, given)
    context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    context._jsc.sc().listenerBus().waitUntilEmpty()
    assert not context.statusTracker().getJobIdsForGroup("many rows")
    wanted = [{"id": row["id"], "s": row["s"] and row["s"].upper()} for row in given.to_pylist() if row["id"] % 3 == 1]
    assert made.to_pylist() == wanted


@pytest.mark.parametrize("name", PLANNED)
def test_anything_else_is_planned_for_each_slice(session: SparkSession, name: str) -> None:
    transform, compiled = plan_of(session, PLANNED[name])
    assert compiled is None
    given = rows(0, 9)
    assert sorted(transform(session, given).to_pylist(), key=repr) == sorted(by_spark(session, PLANNED[name], given), key=repr)


@pytest.mark.parametrize("expression", PRESENT)
def test_the_present_time_does_not_stand_still(session: SparkSession, expression: str) -> None:
    def function(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("id", f"{expression} AS at")

    assert plan_of(session, function)[1] is None


def test_two_slices_have_two_times(session: SparkSession) -> None:
    transform, _ = plan_of(session, lambda frame: frame.selectExpr("id", "current_timestamp() AS at"))
    first, second = (transform(session, rows(0))["at"][0].as_py() for _ in range(2))
    assert first < second


def test_what_raises_raises_as_before_and_a_batch_tried_again_goes_by_jobs(session: SparkSession) -> None:
    def function(frame: DataFrame) -> DataFrame:
        return frame.select("id", F.expr("1 / (id - 50)").alias("x")).where("id <> 50")

    transform, compiled = plan_of(session, function)
    assert compiled is not None
    assert transform(session, rows(48, 4)).num_rows == 3, "the optimiser has the filter first"

    transform, compiled = plan_of(session, lambda frame: frame.select("id", F.expr("1 / (id - 50)").alias("x")))
    assert compiled is not None
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        transform(session, rows(48, 4))
    with as_in_batches(session), pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        transform(session, rows(48, 4))
    assert transform(session, rows(60, 4)).num_rows == 4


def test_what_raises_in_the_middle_leaves_nothing_outside_the_heap(session: SparkSession) -> None:
    assert session._jvm is not None
    allocator = session._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    transform, _ = plan_of(session, lambda frame: frame.select("id", F.expr("1 / (id - 5000)").alias("x")))
    before = allocator.getAllocatedMemory()
    for _ in range(3):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            transform(session, rows(0, 8_000))
        for _ in range(2):
            transform(session, rows(0))
    assert allocator.getAllocatedMemory() == before


@pytest.mark.parametrize("expression", MAPS if LONG_FORM else MAPS[::3])
def test_a_record_that_raised_leaves_nothing_to_the_next_slice(session: SparkSession, expression: str) -> None:
    """Spark's builder of maps keeps its keys when one comes twice."""

    def function(frame: DataFrame) -> DataFrame:
        return frame.selectExpr("id", f"{expression} AS m")

    transform, compiled = plan_of(session, function, texts("b", "c"))
    assert compiled is not None
    slices = [texts("e"), texts("f", "g", first=1), texts("h", first=3)]
    wanted = by_spark_of_each(session, function, slices)
    with pytest.raises(Exception, match="DUPLICATED_MAP_KEY"):
        transform(session, texts("b", "a", "d"))
    for number, good in enumerate(slices):
        assert transform(session, good).to_pylist() == wanted[number], number


def test_an_error_that_ends_a_thread_of_the_jvm_is_raised(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of a full stack, after which the thread never says how it ended."""
    assert session._jvm is not None
    real = spark_objects(session._jvm)
    short = replace(real, patience=session._jvm.scala.concurrent.duration.Duration.create("1 s"))
    monkeypatch.setattr(local_relation, "spark_objects", lambda jvm: short)
    transform, compiled = plan_of(session, lambda frame: frame.selectExpr("id", "s RLIKE '^(ab|ba)*$' AS ok"))
    assert compiled is not None
    with pytest.raises(Py4JError, match="TimeoutException"):
        transform(session, texts("ab" * 500_000))
    assert transform(session, texts("abba")).to_pylist() == [{"id": 0, "ok": True}]


def test_where_python_fails_the_jvm_gives_back_what_it_held(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert session._jvm is not None
    allocator = session._jvm.org.apache.spark.sql.util.ArrowUtils.rootAllocator()
    transform, _ = plan_of(session, lambda frame: frame.selectExpr("id", "repeat(s, 1000) AS s"))
    before = allocator.getAllocatedMemory()
    with monkeypatch.context() as patch:
        patch.setattr(pa.ipc, "open_stream", no_memory)
        with pytest.raises(MemoryError):
            transform(session, texts(*["abcdefgh"] * 8_000))
    assert transform(session, texts("abc")).num_rows == 1
    assert allocator.getAllocatedMemory() == before


@pytest.mark.parametrize("expression", HOURS)
def test_what_was_compiled_ends_with_its_day(session: SparkSession, monkeypatch: pytest.MonkeyPatch, expression: str) -> None:
    """Spark makes a constant of hours, by the day on which it compiles."""
    gone_through, through = list[date](), CompiledPlan.rows_of
    monkeypatch.setattr(CompiledPlan, "rows_of", lambda plan, given: gone_through.append(plan.day) or through(plan, given))
    clock, today = [0.0], [YESTERDAY]
    monkeypatch.setattr(compiled_plan, "_today", lambda: today[0])
    keeper = PlanKeeper(
        lambda frame: frame.selectExpr("id", f"{expression} AS at"), dict, monotonic=lambda: clock[0], beside=at_once
    )
    transform = LocalTransform(keeper, NUMBERS)
    for _ in range(3):
        transform(session, texts(None))
    today[0] = YESTERDAY + timedelta(days=1)
    for now in (1.0, 1.6):
        clock[0] = now
        transform(session, texts(None))
        assert gone_through == [YESTERDAY], "of today nothing is compiled yet"
    transform(session, texts(None))
    assert gone_through == [YESTERDAY, today[0]], "the renewal has compiled it anew"


def test_a_guarded_record_in_every_slice_keeps_no_function_from_being_compiled(session: SparkSession) -> None:
    """Where the function is called, Spark computes what is guarded by a filter behind it, and raises."""

    def guarded(frame: DataFrame) -> DataFrame:
        calls.append(frame)
        return frame.select("id", F.expr("1 / (id - 50)").alias("x")).where("id <> 50")

    calls: list[DataFrame] = []
    keeper = PlanKeeper(guarded, dict, monotonic=lambda: 0.0)
    transform = LocalTransform(keeper, NUMBERS)
    for number in range(5):
        try:
            made = transform(session, rows(48, 4))
        except Exception as exc:
            assert number < 2 and "DIVIDE_BY_ZERO" in str(exc)
            with as_in_batches(session):
                made = transform(session, rows(48, 4))
        assert made["id"].to_pylist() == [48, 49, 51]
    assert len(calls) == 2
    assert keeper._known is not None and keeper._known.with_tables is not None and keeper._known.with_tables.code is not None


def test_what_cannot_be_compiled_is_planned_with_its_lookups(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise ValueError("made up")

    monkeypatch.setattr(kept_plan, "compiled", fails)
    keeper = PlanKeeper(found_in_a_table, dict, monotonic=lambda: 0.0)
    transform = LocalTransform(keeper, NUMBERS)
    for _ in range(3):
        made = transform(session, rows(0))
    assert keeper._known is not None and keeper._known.with_tables is not None
    assert not any(step.before or step.after for step in keeper._known.with_tables.steps), "it is a lookup"
    assert made.to_pylist() == by_spark(session, found_in_a_table, rows(0))


@pytest.mark.parametrize("name", GUARDED)
def test_a_guard_keeps_what_follows_from_raising(session: SparkSession, name: str) -> None:
    """Spark would compute what stands twice before the guard."""
    transform, compiled = plan_of(session, GUARDED[name])
    assert compiled is not None
    for given in (rows(0), rows(0, 300)):
        assert transform(session, given).to_pylist() == by_spark(session, GUARDED[name], given)


def test_plans_do_not_take_each_others_code(session: SparkSession) -> None:
    def function_of(n: int) -> Transform:
        return lambda frame: frame.where(f"id % {n} = 0").selectExpr(f"id * {n} AS a", f"concat(s, '{n}') AS b")

    def given_by(n: int) -> list[list[dict[str, object]]]:
        return by_spark_of_each(session, function_of(n), slices, lambda row: first_number(row) // n)

    numbers, slices = (2, 3, 5), [rows(first, 31) for first in (0, 40)]
    transforms = {n: plan_of(session, function_of(n))[0] for n in numbers}
    wanted = {n: given_by(n) for n in numbers}
    for number, given in enumerate(slices):
        for n, transform in transforms.items():
            assert transform(session, given).to_pylist() == wanted[n][number], (n, number)
