"""What a transform makes lands or is quarantined, too: text that is not UTF-8, times of any year, the ends of numbers."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.tables.value_lanes import LandedRows, LaneWorld, Sent

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch.transform import Transform
from lakebound_spark.columns import explode

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

LANES: tuple[Lane, ...] = ("direct", "driver", "cluster")
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
WIDTH = 10
TEXTS = (
    b"a",
    b"",
    b"\xff",
    b"a\xc3",
    b"\xed\xa0\x80",
    "é".encode(),
    "\U0010ffff".encode() * 40,
    b"x" * 5000,
    b"y" * 256,
    b"/=",
)
NUMBERS = (0, -1, FIRST_US, FIRST_US - 1, LAST_US, LAST_US + 1, 1_700_000_000 * 10**9, 2**63 - 1, -(2**63), -(2**63) + 8, None)
RECORDS = 33


def typed(frame: DataFrame) -> DataFrame:
    """Text of bytes, and a time of microseconds."""
    text, time = F.unbase64("b").cast("string"), F.timestamp_micros("n")
    nested = F.struct(F.array(time).alias("times"), F.create_map(F.lit("k"), text).alias("texts"))
    return frame.select(text.alias("p"), time.alias("t"), F.col("n").alias("q"), nested.alias("inside"), KAFKA_COLUMN)


def truncated(frame: DataFrame) -> DataFrame:
    """Numbers that an Iceberg table truncates."""
    return frame.select(F.col("n").alias("q"), F.lit("x").alias("p"), KAFKA_COLUMN)


def several(frame: DataFrame) -> DataFrame:
    """Three rows of a record, one of which may be bad."""
    texts = F.array(F.lit("x"), F.unbase64("b").cast("string"), F.lit("y"))
    return explode(frame.select(texts.alias("texts"), F.col("n").alias("q"), KAFKA_COLUMN), "texts", "p")


def is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def lands(transform: Transform, text: bytes, number: int | None) -> bool:
    """Whether a record lands, by what each transform makes of it."""
    is_time = transform is several or number is None or FIRST_US <= number <= LAST_US
    is_truncated = number is None or number - number % WIDTH >= -(2**63)
    return is_truncated and (transform is truncated or (is_text(text) and is_time))


@pytest.mark.parametrize(("transform", "rows"), [(typed, 1), (truncated, 1), (several, 3)])
def test_what_a_transform_makes_lands_or_is_quarantined(
    session: SparkSession, tmp_path: Path, transform: Transform, rows: int
) -> None:
    records = [(TEXTS[at % len(TEXTS)], NUMBERS[at % len(NUMBERS)]) for at in range(RECORDS)]
    values = [
        b'{"b":"%s","n":%s}' % (base64.b64encode(text), b"null" if number is None else b"%d" % number)
        for text, number in records
    ]
    wanted = {offset for offset, record in enumerate(records) if lands(transform, *record)}
    assert 0 < len(wanted) < len(records)
    found = {way: landed(session, tmp_path / way, way, transform, values) for way in LANES}
    for one in found.values():
        for table in one.tables.values():
            assert {offset: len(of_record) for offset, of_record in table.items()} == dict.fromkeys(wanted, rows)
        assert one.bad.keys() == set(range(len(records))) - wanted
        assert all(len(of_record) == 1 and of_record[0][2] == values[offset] for offset, of_record in one.bad.items())
    first, *others = found.values()
    for other in others:
        assert other.bad == first.bad
        assert [told(table) for table in other.tables.values()] == [told(table) for table in first.tables.values()]


def landed(session: SparkSession, folder: Path, way: Lane, transform: Transform, values: list[bytes]) -> LandedRows:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "b STRING, n BIGINT"},
        "freshness": "1s",
        "tables": [
            {"format": "delta", "name": "shop.values", "partition_by": ["p"]},
            {"format": "iceberg", "name": "shop.values", "partition_by": [f"truncate({WIDTH}, q)"]},
        ],
    }
    world = LaneWorld(session, folder, PipelineSpec.model_validate(body), way, transform, has_transform=True)
    world.land(Sent(0, values, [1_700_000_000_000] * len(values)))
    try:
        return world.read()
    finally:
        world.close()


def told(rows: dict[int, list[dict[str, object]]]) -> dict[int, list[str]]:
    """Return all rows as text, a record's in one order."""
    return {offset: sorted(map(repr, of_record)) for offset, of_record in rows.items()}
