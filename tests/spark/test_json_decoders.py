"""The executors make of a record what the driver makes of it; and what Spark's own reader lands, lands as the same.

Spark's reader decodes in real time only. Where it rewrites what was sent, as numbers and objects in a text, it is left aside.
"""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.stand_ins import ORDERS
from tests.support.tables.json_texts import DOUBTFUL, LATER, PLAIN, mutations, spec_of, strange_values

from lakebound.landing.direct_read import RecordColumns
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.decode import PROBLEM, SKIPPED, Decoder, make_decoder
from lakebound_spark.batch.decoded_rows import row_decoder
from lakebound_spark.batch.transform import KAFKA_SCHEMA
from lakebound_spark.real_time.spark_decoder import SparkDecoder, make_spark_decoder

pytestmark = pytest.mark.spark

IDS = {"orders": "id"}
FORMS = [
    *("2026-11-28T10:00Z", "2026-11-28T10", "2026-11-28 10", "2026-11-28T10:00+01:00", "20261128", "20261128T100000Z", "2026"),
    *("2026-11", "2026-1-2", "2026-1-2 3:4:5", "2026-01-02T03:04:05.", "2026-01-02T03:04:05.1234567", "2026-01-02T03:04:05 Z"),
    *("2026-01-02T03:04:05+1:2", "2026-01-02T03:04:05-18:00", "2026-01-02T03:04:05+0100", "2026-01-02T03:04:05+01:00:30"),
    *("2026-07-02T03:04:05 Europe/Berlin", "2026-03-29T02:30:00Europe/Berlin", "2026-10-25T02:30:00 Europe/Berlin"),
    *("2026-07-02T03:04:05PST", "2026-07-02T03:04:05 UTC+1", "2026-07-02T03:04:05GMT+01:00", "2026-07-02 10:00 GMT", "now"),
    *(
        "2026-07-02GMT",
        "1850-07-02T03:04:05 Europe/Berlin",
        "\u00a02026-07-02",
        "\t2026-07-02\n",
        "2026-07-02T",
        "12:30",
        "T12",
    ),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2026-07-02T03:04:05,5Z", "+2026-07-02", "002026-07-02"),
    *("2026-07-02T03:04:05EST", "2026-07-02T03:04:05CET", "2026-07-02T03:04:05z", "2026-07-02T3:4", "2026-W48-6", "2026-332"),
]
"""Of times."""
SINGLE = [rb"""{'id':'a'}""", rb"""{'id':'it\'s "x"','n':1}""", rb"""{"id":'a',"labels":{'k':'v'}}""", rb"""{'id':'a\\'}"""]
LONG = [
    b'{"id":"a","' + b"n" * 60_000 + b'":1}',
    b'{"id":"a","big":1,"unknown":' + b"1" * 1200 + b"}",
    b'{"id":"a","unknown":' + b"[" * 990 + b"]" * 990 + b"}",
]
VALUES: list[bytes | None] = [
    None,
    b"",
    *PLAIN,
    *DOUBTFUL,
    *SINGLE,
    *LONG,
    *mutations(seed=6, count=4_000 if LONG_FORM else 1_000),
]
VALUES += [*strange_values(seed=5)]
VALUES += [json.dumps({"id": "a", name: text}).encode() for name in ("at", "day", "wall") for text in FORMS]


def by_executors(session: SparkSession, decoder: Decoder | SparkDecoder, values: list[bytes | None]) -> dict[int, Any]:
    """What becomes of each value: the row as text, or reason and detail."""
    rows = [(b"key", value, "orders", 0, offset, None, 0, None) for offset, value in enumerate(values)]
    frame = session.createDataFrame(rows, KAFKA_SCHEMA).repartition(2)
    found = decoder.decode(frame).select("_kafka.offset", PROBLEM, "_parsed.*").toArrow()
    bad = found.filter(pc.is_valid(found[PROBLEM])).select(["offset", PROBLEM]).to_pylist()
    good = found.filter(pc.is_null(found[PROBLEM])).drop_columns([PROBLEM]).to_pylist()
    told: dict[int, Any] = {row.pop("offset"): row for row in good}
    return told | {row["offset"]: tuple(row[PROBLEM].split("\t", 1)) for row in bad}


def by_driver(spec: PipelineSpec, values: list[bytes | None]) -> dict[int, Any]:
    count = len(values)
    records = RecordColumns(["orders"] * count, [0] * count, [*range(count)], [0] * count, [b"key"] * count, values)
    made = row_decoder(spec, IDS)(records)
    offsets = made.rows[KAFKA_COLUMN].combine_chunks().field("offset").to_pylist()
    told: dict[int, Any] = dict(zip(offsets, made.rows.drop_columns(KAFKA_COLUMN).to_pylist(), strict=True))
    told |= {row["_kafka"]["offset"]: (row["reason"], row["error"]) for row in made.bad.to_pylist()}
    return {offset: told.get(offset, (SKIPPED,)) for offset in range(count)}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"null_values": "skip"},
        {"value": {"unknown_fields": "quarantine"}},
        {"value": {"format": "bytes"}},
    ],
    ids=str,
)
def test_executors_make_of_a_record_what_the_driver_makes_of_it(session: SparkSession, changes: dict[str, Any]) -> None:
    spec = spec_of(**{name: one for name, one in changes.get("value", {}).items() if name != "format"})
    if changes.get("value") == {"format": "bytes"}:
        spec = PipelineSpec.model_validate({**ORDERS, "value": changes["value"]})
    if "null_values" in changes:
        spec = spec.model_copy(update={"null_values": changes["null_values"]})
    made = by_executors(session, make_decoder(spec, IDS), VALUES)
    expected = by_driver(spec, VALUES)
    assert len(made) == len(VALUES)
    wrong = {VALUES[at]: (found, expected[at]) for at, found in made.items() if repr(found) != repr(expected[at])}
    assert wrong == {}


def is_rewritten(value: bytes, found: Any, by_spark: Any) -> bool:
    """Whether rows differ only in texts that no text of the record is: there Spark writes another one."""
    if isinstance(found, str) and isinstance(by_spark, str) and found != by_spark:
        return found.encode() in value and re.match(r"[-0-9{\[]", found) is not None
    if isinstance(found, dict) and isinstance(by_spark, dict) and found.keys() == by_spark.keys():
        return all(is_rewritten(value, found[name], by_spark[name]) for name in found)
    if isinstance(found, list | tuple) and isinstance(by_spark, list | tuple) and len(found) == len(by_spark):
        return all(is_rewritten(value, one, other) for one, other in zip(found, by_spark, strict=True))
    return repr(found) == repr(by_spark)


def test_what_sparks_reader_lands_lands_as_the_same(session: SparkSession) -> None:
    spec = spec_of()
    all_made = by_driver(spec, VALUES)
    # Spark takes long for bad ones: a few of them show that it lands none of these.
    chosen = [at for at, made in all_made.items() if isinstance(made, dict) or at % 5 == 0]
    values, made = [VALUES[at] for at in chosen], [all_made[at] for at in chosen]
    by_spark = by_executors(session, make_spark_decoder(spec, IDS), values)
    landed = {at for at, row in by_spark.items() if isinstance(row, dict)}
    assert len(landed) > (500 if LONG_FORM else 150)
    wrong = {
        values[at]: (made[at], by_spark[at]) for at in landed if not is_rewritten(values[at] or b"", made[at], by_spark[at])
    }
    assert wrong == {}
    for name in LATER:
        start = b'{"id":"a","%s":' % name.encode()
        assert any((values[at] or b"").startswith(start) for at in landed)


def test_columns_have_the_types_that_spark_plans(session: SparkSession) -> None:
    spec = spec_of()
    records = RecordColumns(["orders"], [3], [7], [1_767_225_600_123], [None], [b'{"id":"a"}'])
    rows = row_decoder(spec, {"orders": "topic-id"})(records).rows
    none = make_decoder(spec, {"orders": "topic-id"}).decode(session.createDataFrame([], KAFKA_SCHEMA))
    expected = none.select("_parsed.*").toArrow().schema
    assert [(field.name, field.type) for field in rows.schema] == [
        *((field.name, field.type) for field in expected),
        (KAFKA_COLUMN, KAFKA_TYPE),
    ]
    [row] = rows.to_pylist()
    assert row[KAFKA_COLUMN] == {
        "topic": "orders",
        "topic_id": "topic-id",
        "partition": 3,
        "offset": 7,
        "timestamp": datetime.datetime(2026, 1, 1, 0, 0, 0, 123_000, datetime.UTC),
        "ordinal": 0,
    }
