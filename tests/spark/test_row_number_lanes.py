"""The rows of each record are numbered from 0 on in every lane, with the same numbers in each, whatever the function does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.streams.transform_functions import exploded_by_spark, exploded_twice, joined_with_several, records
from tests.support.tables.transform_worlds import LANES, assert_alike, sent, told, world

from lakebound_spark.batch.transform import Transform

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]


@pytest.mark.parametrize(
    "function", [exploded_twice, exploded_by_spark, joined_with_several], ids=lambda function: function.__name__
)
def test_the_rows_of_a_record_are_numbered_in_every_lane(session: SparkSession, tmp_path: Path, function: Transform) -> None:
    values, found = records(random.Random(3), 60), {}
    for way in LANES:
        one = world(session, tmp_path / way, way, function)
        # The second batch of executors is numbered at once.
        one.land(sent(0, values[:30]))
        one.land(sent(30, values[30:]))
        [rows] = one.read().tables.values()
        numbers = [sorted(row["_kafka"]["ordinal"] for row in of_record) for of_record in rows.values()]
        assert [*numbers] == [[*range(len(of_record))] for of_record in numbers], way
        assert max(map(len, numbers)) > 1
        found[way] = told(one)
        one.close()
    assert_alike(found)
