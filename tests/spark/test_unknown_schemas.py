"""Schemas that nobody knows, in Spark's executors: the driver hears of them, and where the first of each partition stands."""

from __future__ import annotations

import random

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.support.formats import version_chains
from tests.support.formats.version_chains import Version

from lakebound.formats.kinds import SchemaFormat
from lakebound.formats.registered import NewSchemasError, new_schemas_in
from lakebound.formats.schemas import SchemaText
from lakebound.formats.versions import Version as ReadVersion
from lakebound.formats.versions import schemas_of_subjects
from lakebound_spark.batch.decode import Decoder, kafka_struct
from lakebound_spark.batch.transform import KAFKA_SCHEMA
from lakebound_spark.stream.unknown_schemas import first_unknown

pytestmark = pytest.mark.spark


def framed(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big") + b"\x02"


def records(session: SparkSession, ids: list[int], partitions: int = 1) -> DataFrame:
    """Return Kafka's columns of values with these ids, one in each partition after the other."""
    rows = [(None, framed(one), "t", at % partitions, at // partitions, None, 0, None) for at, one in enumerate(ids)]
    return session.createDataFrame(rows, KAFKA_SCHEMA)


def test_thousands_of_ids_that_nobody_knows_come_back_to_the_driver(session: SparkSession) -> None:
    text = version_chains.avro_text(Version((version_chains.Field("id", "long", 1),)))
    found = schemas_of_subjects({"orders-value": [ReadVersion(1, (1,), SchemaText("avro", text))]}, None, {}, {})
    decoder = Decoder(
        SchemaFormat(found.columns, found.reader, known=found.known), kafka_struct({"t": "id"}), is_null_skipped=False
    )
    ids = random.Random(1).sample(range(2, 2**32), 3_000)
    with pytest.raises(Exception, match=NewSchemasError.__name__) as caught:
        decoder.decode(records(session, ids)).toArrow()
    told = new_schemas_in(str(caught.value))
    assert told is not None and len(told.ids) >= 500 and told.ids <= set(ids)


def test_the_first_record_of_an_unknown_schema_is_found_in_each_partition(session: SparkSession) -> None:
    frame = records(session, [1, 2, 1, 1, 2, 7, 9, 1, 8], partitions=3).repartition(2)
    assert first_unknown(frame, {"value": frozenset({1, 2})}) == {"t": {0: 2, 2: 1}}
    assert first_unknown(frame, {"value": frozenset({1, 2, 7, 8, 9}), "key": frozenset()}) == {}
