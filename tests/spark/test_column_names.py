"""Whatever name a schema gives a column, its values land in each lane, with and without a transform."""

from __future__ import annotations

import json
import string
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.streams.long_form import each_value_once
from tests.support.tables.value_lanes import LaneWorld, Sent

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.transform import Transform

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

LANES: tuple[Lane, ...] = ("direct", "driver", "cluster")
REFUSED_IN_DELTA = frozenset(" ,;{}()=\n\t\r")
INSIDE = tuple(f"a{character}b" for character in string.punctuation if character not in REFUSED_IN_DELTA)
WORDS = (
    *(
        "_corrupt_record",
        "value",
        "key",
        "topic",
        "offset",
        "timestamp",
        "record",
        "told",
        "problem",
        "rows",
        "reason",
        "error",
    ),
    *(
        "_parsed",
        "_problem",
        "_value",
        "_key",
        "_headers",
        "_body",
        "_row",
        "position",
        "select",
        "from",
        "1a",
        "42",
        "ä",
        "名",
        "a" * 200,
    ),
)
NAMES = (*INSIDE, *WORDS)
WITHOUT_ESCAPES = tuple(name for name in NAMES if json.dumps(name, ensure_ascii=False) == f'"{name}"')
WAYS: tuple[tuple[Lane, tuple[str, ...]], ...] = (("direct", WITHOUT_ESCAPES), *((way, NAMES) for way in LANES))


def same(frame: DataFrame) -> DataFrame:
    return frame


def with_one_more(frame: DataFrame) -> DataFrame:
    return frame.withColumn("one_more", F.lit(1)).where(F.col("_kafka").isNotNull())


def ddl(names: Iterable[str]) -> str:
    return ", ".join(f"`{name.replace('`', '``')}` BIGINT" for name in names)


@each_value_once
@pytest.mark.parametrize("transform", [None, same, with_one_more], ids=["plain", "same", "with_one_more"])
@pytest.mark.parametrize(("way", "names"), WAYS, ids=["direct without escapes", *LANES])
def test_a_name_lands(
    session: SparkSession, tmp_path: Path, way: Lane, names: tuple[str, ...], transform: Transform | None
) -> None:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": ddl(names)},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "shop.names"}, {"format": "iceberg", "name": "shop.names"}],
    }
    spec = PipelineSpec.model_validate(body)
    world = LaneWorld(session, tmp_path, spec, way, transform or same, has_transform=transform is not None)
    sent = {name: number for number, name in enumerate(names)}
    bad = dict.fromkeys(names, "x")
    world.land(Sent(0, [json.dumps(sent).encode(), json.dumps(bad).encode()], [1_700_000_000_000] * 2))
    try:
        found = world.read()
    finally:
        world.close()
    for rows in found.tables.values():
        [row] = rows[0]
        assert {name: row[name] for name in names} == sent
    assert found.bad.keys() == {1}
