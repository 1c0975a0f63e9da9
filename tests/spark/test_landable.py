"""Which rows can land is said twice, for columns of Spark and of Arrow: both say the same of every value of every type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import PartitionField
from lakebound.storage.location import Location
from lakebound.tables.layout import FileLayout
from lakebound_spark.batch.landable import LandableCheck, make_check

pytestmark = pytest.mark.spark

FIRST_DAY, LAST_DAY = -719_162, 2_932_896
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
YEARS, UTF8 = "outside of the years 1 to 9999", "text that is not UTF-8"


@dataclass(frozen=True)
class Kind:
    """Rows of one column, made of numbers or of bytes, by an expression of Spark's.

    Attributes:
        expression: Makes the value of ``x``.
        fates: By what it is made of, why it cannot land; None where it can.
    """

    expression: str
    fates: Mapping[int | bytes | None, str | None]


TEXTS = {b"a": None, b"": None, None: None, b"\xff": UTF8, b"a\xc3": UTF8, b"\xed\xa0\x80": UTF8, "\U0010ffff".encode(): None}
DAYS = {FIRST_DAY: None, FIRST_DAY - 1: YEARS, LAST_DAY: None, LAST_DAY + 1: YEARS, 0: None, None: None}
DAYS |= {2**31 - 1: YEARS, -(2**31): YEARS}
TIMES = {FIRST_US: None, FIRST_US - 1: YEARS, LAST_US: None, LAST_US + 1: YEARS, -1: None, None: None}
TIMES |= {1_700_000_000_000_000_000: YEARS, 2**63 - 1: YEARS, -(2**63): YEARS}
_DAY, _TIME, _TEXT = "date_from_unix_date(cast(x AS INT))", "timestamp_micros(x)", "cast(x AS STRING)"
KINDS = {
    "text": Kind(_TEXT, TEXTS),
    "bytes": Kind("x", dict.fromkeys(TEXTS)),
    "date": Kind(_DAY, DAYS),
    "timestamp": Kind(_TIME, TIMES),
    "timestamp_ntz": Kind(f"cast({_TIME} AS TIMESTAMP_NTZ)", TIMES),
    "number": Kind("x", dict.fromkeys(TIMES)),
    "array of text": Kind(f"array('a', NULL, {_TEXT})", TEXTS),
    "array of arrays of dates": Kind(f"array(NULL, array(), array(NULL, {_DAY}))", DAYS),
    "keys of a map": Kind(f"map(coalesce({_TEXT}, ''), 1)", TEXTS),
    "values of a map": Kind(f"map('a', NULL, 'b', {_TIME})", TIMES),
    "map or none": Kind(f"CASE WHEN x IS NOT NULL THEN map('b', {_DAY}) END", DAYS),
    "struct": Kind(f"struct(1 AS a, {_TEXT} AS b)", TEXTS),
    "struct or none": Kind(f"CASE WHEN x IS NOT NULL THEN struct({_DAY} AS b) END", DAYS),
    "struct of lists of structs": Kind(f"struct(array(NULL, struct({_TIME} AS c)) AS b)", TIMES),
}


def frame(session: SparkSession, kind: Kind) -> DataFrame:
    """Return one row per value, its number as the offset."""
    made_of = pa.binary() if any(isinstance(value, bytes) for value in kind.fates) else pa.int64()
    rows = session.createDataFrame(pa.table({"x": pa.array(kind.fates, made_of), "n": pa.array(range(len(kind.fates)))}))
    kafka = F.struct(F.lit("orders").alias("topic"), F.lit(0).alias("partition"), F.col("n").alias("offset"))
    return rows.select(F.expr(kind.expression).alias("v"), kafka.alias(KAFKA_COLUMN))


@pytest.mark.parametrize("name", KINDS)
def test_spark_and_arrow_find_the_same_rows(session: SparkSession, name: str) -> None:
    kind = KINDS[name]
    output = frame(session, kind)
    check = make_check(output.schema, [], has_transform=True)
    wanted = [None if words is None else f"transform\tv: {words}" for words in kind.fates.values()]
    found = output.withColumns({"problem": check.problem(output), "n": F.col(f"{KAFKA_COLUMN}.offset")}).toArrow().sort_by("n")
    assert found["problem"].to_pylist() == wanted
    rows = found.drop_columns(["problem", "n"])
    assert [check.holds(rows.slice(number, 1)) for number in range(rows.num_rows)] == [reason is None for reason in wanted]
    assert check.holds(rows) == all(reason is None for reason in wanted)
    places = {row["offset"]: row["problem"] for row in check.places(output).to_pylist()}
    assert places == {number: reason for number, reason in enumerate(wanted) if reason is not None}


def test_a_record_of_several_rows_is_named_once(session: SparkSession) -> None:
    kafka = F.struct(F.lit("orders").alias("topic"), F.lit(0).alias("partition"), F.lit(7).alias("offset"))
    day = F.expr("date_from_unix_date(cast(id AS INT) * 3000000)")
    output = session.range(3).select(day.alias("v"), F.lit(b"\xff").cast("string").alias("w"), kafka.alias(KAFKA_COLUMN))
    check = make_check(output.schema, [], has_transform=True)
    [place] = check.places(output).to_pylist()
    assert (place["offset"], place["problem"].partition("\t")[0]) == (7, "transform")


def truncated(width: int, kind: str) -> LandableCheck:
    field = PartitionField("truncate", width, "v")
    layouts = [
        FileLayout("iceberg:a.b", "iceberg", Location("/nowhere"), (field,)),
        FileLayout("delta:a.b", "delta", Location("/nowhere")),
    ]
    schema = SparkSession.getActiveSession().range(0).select(F.lit(None).cast(kind).alias("v")).schema  # type: ignore[union-attr]
    return make_check(schema, layouts, has_transform=False)


@pytest.mark.parametrize(("kind", "bits"), [("INT", 32), ("BIGINT", 64)])
@pytest.mark.parametrize("width", [1, 2, 7, 10, 1_000_000_007, 2**31 - 1])
def test_no_partition_value_is_smaller_than_any_number_of_its_type(
    session: SparkSession, kind: str, bits: int, width: int
) -> None:
    least = -(2 ** (bits - 1))
    numbers = sorted(
        {least, least + 1, least + width - 1, least - least % -width, least - least % -width - 1, -1, 0, -least - 1}
    )
    numbers = [number for number in numbers if least <= number]
    check = truncated(width, kind)
    rows = pa.table({"v": pa.array(numbers, pa.int32() if bits == 32 else pa.int64())})
    output = session.createDataFrame(rows)
    fits = [number - number % width >= least for number in numbers]
    problems = output.select("v", check.problem(output).alias("problem")).toArrow().sort_by("v")["problem"].to_pylist()
    assert [problem is None for problem in problems] == fits
    assert [check.holds(rows.slice(at, 1)) for at in range(len(numbers))] == fits
    assert {problem for problem in problems if problem} <= {
        f"does_not_fit\tv: too small for the partition field truncate({width}, v)"
    }


@pytest.mark.parametrize("kind", ["TINYINT", "SMALLINT", "STRING"])
def test_other_types_are_truncated_without_a_bound(session: SparkSession, kind: str) -> None:
    assert not truncated(10, kind).is_needed


def test_what_the_decoder_makes_is_not_looked_at_again(session: SparkSession) -> None:
    output = frame(session, KINDS["timestamp"])
    check = make_check(output.schema, [], has_transform=False)
    assert not check.is_needed and check.holds(output.toArrow())
