"""A lookup in place of a join gives what the join gives, and a join that it cannot stand for stays one."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.kept_function import KeptFunction

from lakebound_spark.batch import table_lookup
from lakebound_spark.batch.failing_records import as_in_batches
from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.spark_objects import spark_objects
from lakebound_spark.batch.transform import Transform

pytestmark = pytest.mark.spark

SEEDS = 60 if LONG_FORM else 3
APART = 100
"""Between the first ids of two slices: so a row's id says of which slice it is."""

RECORDS = StructType().add("id", "long").add("s", "string").add("i", "integer").add("l", "long").add("d", "date")
RECORDS = RECORDS.add("x", "double")
TABLE = StructType().add("ks", "string").add("ki", "integer").add("kl", "long").add("kd", "date").add("kx", "double")
TABLE = TABLE.add("name", "string").add("size", "decimal(12,3)").add("raw", "binary").add("at", "timestamp")
TABLE = TABLE.add("ok", "boolean")
Join = Callable[[DataFrame, DataFrame], DataFrame]
KINDS = ("inner", "left", "right", "left_semi", "left_anti")


def record_rows(dice: random.Random, count: int, first: int = 0) -> pa.Table:
    """Return rows whose keys are partly those of ``table``."""
    rows = [
        {
            "id": number,
            "s": dice.choice([None, "", "ä", *(f"k{n}" for n in range(8))]),
            "i": dice.choice([None, *range(-3, 8)]),
            "l": dice.choice([None, -(2**63), 2**63 - 1, *range(8)]),
            "d": dice.choice([None, *(datetime.date(2026, 1, day) for day in range(1, 9))]),
            "x": dice.choice([None, 0.0, -0.0, float("nan"), 1.5]),
        }
        for number in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=LocalRelations(RECORDS)._arrow)


def records(session: SparkSession, dice: random.Random, count: int) -> DataFrame:
    """Return a local relation of such rows."""
    return LocalRelations(RECORDS)(session, record_rows(dice, count))


def write_table(dice: random.Random, folder: Path, *, unique: bool, count: int) -> None:
    """Write a table; its keys are unique or not, and one may be null."""

    def keys(values: list[Any]) -> list[Any]:
        chosen = dice.sample(values, min(count, len(values))) if unique else dice.choices(values, k=count)
        return (chosen + [None] * count)[:count] if not unique or dice.random() < 0.5 else chosen

    columns = {
        "ks": keys(["", "ä", "z", *(f"k{n}" for n in range(8))]),
        "ki": keys(list(range(-4, 7))),
        "kl": keys([-(2**63), 2**63 - 1, *range(9)]),
        "kd": keys([datetime.date(2026, 1, day) for day in range(1, 12)]),
        "kx": keys([0.0, float("nan"), 1.5, 2.5, *(float(n) for n in range(5, 12))]),
    }
    count = min(map(len, columns.values()))
    rows = [
        {
            **{name: values[n] for name, values in columns.items()},
            "name": dice.choice([None, f"name {n}"]),
            "size": dice.choice([None, n]),
            "raw": dice.choice([None, bytes([n])]),
            "at": dice.choice([None, datetime.datetime(2026, 1, 1, n % 24, tzinfo=datetime.UTC)]),
            "ok": dice.choice([None, True, False]),
        }
        for n in range(count)
    ]
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=LocalRelations(TABLE)._arrow), folder / "rows.parquet")


def random_join(dice: random.Random) -> tuple[Join, bool]:
    """Return a join by one column of either side or by an expression of it, and something behind it.

    Also return whether each of its rows is of a record: one that keeps the table's rows gives them with every slice.
    """
    own, theirs = dice.choice(
        [("s", "ks"), ("i", "ki"), ("l", "kl"), ("d", "kd"), ("x", "kx"), ("i", "kl"), ("upper(s)", "ks"), ("i + 1", "ki")]
    )
    kind, flipped, by_name = dice.choice(KINDS), dice.random() < 0.3, dice.random() < 0.5
    more = dice.random() < 0.2

    def joined(frame: DataFrame, table: DataFrame) -> DataFrame:
        if by_name and own in ("s", "i", "l", "d", "x"):
            return frame.join(F.broadcast(table.withColumnRenamed(theirs, own)), own, kind)
        condition = F.expr(f"{own} = {theirs}")
        if more:
            condition = condition & F.expr("name IS NOT NULL")
        if flipped:
            return F.broadcast(table).join(frame, condition, {"left": "right", "right": "left"}.get(kind, "inner"))
        return frame.join(F.broadcast(table), condition, kind)

    def behind(frame: DataFrame, table: DataFrame) -> DataFrame:
        found = joined(frame, table)
        if "name" in found.columns and dice_of["where"]:
            found = found.where("name IS NULL OR length(name) > 6").withColumn("more", F.concat("name", F.lit("!")))
        return found

    dice_of = {"where": dice.random() < 0.5}
    return behind, kind != "right"


def rows_of(frame: DataFrame) -> tuple[pa.Schema, list[str]]:
    """Return the types of the rows, and the rows: slices of one batch are put together, whichever way each was made."""
    rows = arrow_of(frame)
    return rows.schema, sorted(repr(row) for row in rows.to_pylist())


def rows_of_each(session: SparkSession, function: Transform, slices: list[pa.Table]) -> list[tuple[pa.Schema, list[str]]]:
    """Return ``rows_of`` of each slice, by one query: of a record the function gives the same whatever the others are."""
    of_all = arrow_of(function(LocalRelations(RECORDS)(session, pa.concat_tables(slices))))
    made: list[list[str]] = [[] for _ in slices]
    for row in of_all.to_pylist():
        made[row["id"] // APART].append(repr(row))
    return [(of_all.schema, sorted(rows)) for rows in made]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_kept_plan_with_a_table_gives_what_the_join_gives(session: SparkSession, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(5):
        folder = tmp_path / str(number)
        write_table(dice, folder, unique=dice.random() < 0.8, count=dice.choice([0, 1, 5, 10]))
        join, is_by_record = random_join(dice)

        def function(frame: DataFrame, folder: Path = folder, join: Join = join) -> DataFrame:
            return join(frame, frame.sparkSession.read.schema(TABLE).parquet(str(folder)))

        slices = [record_rows(dice, dice.choice([0, 1, 20]), first=APART * at) for at in range(4)]
        frames = [LocalRelations(RECORDS)(session, rows) for rows in slices]
        if is_by_record:
            wanted = rows_of_each(session, function, slices)
        else:
            wanted = [rows_of(function(frame)) for frame in frames]
        keeper = KeptFunction(function, dict, monotonic=lambda: 0.0)
        for at, frame in enumerate(frames):
            assert rows_of(keeper(frame)) == wanted[at], f"seed {seed}, number {number}, slice {at}"


KEPT: dict[str, Join] = {
    "left by name": lambda frame, table: frame.join(table.withColumnRenamed("ks", "s"), "s", "left"),
    "inner": lambda frame, table: frame.join(F.broadcast(table), F.expr("i = ki")),
    "right": lambda frame, table: table.join(frame, F.expr("ki = i"), "right"),
    "a cast": lambda frame, table: frame.join(table, F.expr("cast(i AS LONG) = kl"), "left").where("id < 9"),
    "two": lambda frame, table: (
        frame.join(table.select("ki", "name"), F.expr("i = ki"), "left")
        .drop("ki")
        .join(table.select("kd", F.col("name").alias("other")), F.expr("d = kd"))
    ),
}
KEPT["a column that is never null"] = lambda frame, table: frame.join(
    F.broadcast(table.withColumn("known", F.lit(True))), F.expr("i = ki")
).where("id >= 0")
LEFT: dict[str, Join] = {
    "a function in Python": lambda frame, table: frame.join(
        F.broadcast(table), F.udf(lambda number: number, "int")("i") == table["ki"]
    ),
    "a full join": lambda frame, table: frame.join(table, F.expr("i = ki"), "full"),
    "by two columns": lambda frame, table: frame.join(F.broadcast(table), F.expr("i = ki AND s = ks")),
    "doubles": lambda frame, table: frame.join(F.broadcast(table), F.expr("x = kx")),
    "a nested column": lambda frame, table: frame.join(
        F.broadcast(table.select("ki", F.struct("name").alias("n"))), F.expr("i = ki")
    ),
    "a collation": lambda frame, table: frame.join(
        F.broadcast(table.select(F.expr("ks COLLATE UTF8_LCASE AS k"), "name")), F.expr("s COLLATE UTF8_LCASE = k"), "left"
    ),
}


def kept_plan_of(session: SparkSession, folder: Path, join: Join) -> tuple[bool, Any, Any]:
    """Return whether Spark evaluates the kept plan without a job, its rows, and the function's."""

    def function(frame: DataFrame) -> DataFrame:
        return join(frame, frame.sparkSession.read.schema(TABLE).parquet(str(folder)))

    keeper = KeptFunction(function, dict, monotonic=lambda: 0.0)
    frame = records(session, random.Random(1), 20)
    for _ in range(2):
        keeper(frame)
    made = rows_of(keeper(frame))
    assert keeper._known is not None and keeper._known.with_tables is not None
    return keeper._known.with_tables.compiled is not None, made, rows_of(function(frame))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with unique keys."""
    folder = tmp_path / "table"
    write_table(random.Random(3), folder, unique=True, count=9)
    return folder


@pytest.mark.parametrize("name", KEPT)
def test_the_join_is_computed_without_a_job(session: SparkSession, table: Path, name: str) -> None:
    is_evaluated, made, expected = kept_plan_of(session, table, KEPT[name])
    assert is_evaluated
    assert made == expected and made[1]


@pytest.mark.parametrize("name", LEFT)
def test_a_join_that_no_lookup_stands_for_stays_one(session: SparkSession, table: Path, name: str) -> None:
    is_evaluated, made, expected = kept_plan_of(session, table, LEFT[name])
    assert not is_evaluated
    assert made == expected


@pytest.mark.parametrize("why", ["a key with two rows", "many bytes"])
def test_a_table_that_no_literal_is_made_of_is_joined(
    session: SparkSession, table: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "many bytes":
        monkeypatch.setattr(table_lookup, "_MOST_BYTES", 10)
    else:
        rows = pq.read_table(table)
        pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), table / "rows.parquet")
    is_evaluated, made, expected = kept_plan_of(session, table, KEPT["inner"])
    assert not is_evaluated
    assert made == expected and made[1]


def test_a_lookup_is_made_anew_when_its_table_says_something_else(session: SparkSession, tmp_path: Path) -> None:
    folder, seconds = tmp_path / "table", [0.0]

    def says(name: str) -> None:
        session.createDataFrame([(0, name), (1, "b")], "ki INT, name STRING").write.mode("overwrite").parquet(str(folder))

    def function(frame: DataFrame) -> DataFrame:
        return frame.join(frame.sparkSession.read.schema("ki INT, name STRING").parquet(str(folder)), F.expr("int(id) = ki"))

    keeper = KeptFunction(function, dict, monotonic=lambda: seconds[0])
    frame, seen, made = records(session, random.Random(1), 5), [], []
    for seconds[0], name in ((0.0, "a"), (0.1, ""), (0.2, ""), (2.5, ""), (2.6, ""), (5.0, "c"), (5.1, "")):
        if name:
            says(name)
        seen.append([row["name"] for row in arrow_of(keeper(frame)).sort_by("id").to_pylist()])
        assert keeper._known is not None
        made.append(keeper._known.with_tables)
    assert seen == [["a", "b"]] * 5 + [["c", "b"]] * 2
    assert made[2] is not None and made[4] is made[2], "the table has not changed"
    assert made[6] is not made[2]


def test_another_table_beside_the_records_is_read_as_it_is_now(session: SparkSession, tmp_path: Path) -> None:
    folder, seconds = tmp_path / "table", [0.0]

    def says(count: int) -> None:
        session.range(count).write.mode("overwrite").parquet(str(folder))

    def function(frame: DataFrame) -> DataFrame:
        return frame.select("id").unionAll(frame.sparkSession.read.schema("id LONG").parquet(str(folder)))

    keeper = KeptFunction(function, dict, monotonic=lambda: seconds[0])
    frame = records(session, random.Random(1), 1)
    for seconds[0], count in ((0.0, 1), (0.1, 1), (0.2, 1), (2.5, 3), (2.6, 3), (2.7, 3)):
        if seconds[0] in (0.0, 2.5):
            says(count)
        assert arrow_of(keeper(frame)).num_rows == 1 + count


def test_what_spark_leaves_to_jobs_is_joined(session: SparkSession, table: Path) -> None:
    """A filter of the user's goes first there: with a lookup the key of each record would be computed, and raise."""

    def function(frame: DataFrame) -> DataFrame:
        rows = frame.sparkSession.read.schema(TABLE).parquet(str(table))
        return frame.join(F.broadcast(rows), F.expr("cast(s AS INT) = ki")).where("s RLIKE '^[0-9]+$'")

    keeper, frame = KeptFunction(function, dict, monotonic=lambda: 0.0), records(session, random.Random(1), 20)
    with as_in_batches(session):
        for _ in range(4):
            assert rows_of(keeper(frame)) == rows_of(function(frame))


def test_a_function_that_gives_other_names_is_seen(session: SparkSession) -> None:
    names, seconds = ["a", "b"], [0.0]

    def function(frame: DataFrame) -> DataFrame:
        return frame.select(F.col("id").alias(names[0]), F.col("l").alias(names[1]))

    keeper, frame = KeptFunction(function, dict, monotonic=lambda: seconds[0]), records(session, random.Random(1), 3)
    for seconds[0] in (0.0, 0.1, 0.2):
        assert keeper(frame).columns == ["a", "b"]
    names.reverse()
    for seconds[0] in (2.5, 2.6, 2.7):
        assert keeper(frame).columns == ["b", "a"]


def test_a_plan_that_is_kept_for_long_does_not_grow(session: SparkSession) -> None:
    keeper = KeptFunction(lambda frame: frame.select("id", F.upper("s").alias("s")), dict, monotonic=lambda: 0.0)
    for seed in range(5):
        keeper(records(session, random.Random(seed), 3))
    assert keeper._known is not None
    kept = keeper._known.with_tables
    assert kept is not None
    tag = spark_objects(session._jvm).datasets.DATASET_ID_TAG()
    assert kept.steps[-1].node.getTagValue(tag).isEmpty(), "Spark adds the id of each slice to it"
