"""What Spark's ``from_json`` would land as another value goes to quarantine: in real time, and in batches, too."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.support.streams.stand_ins import ORDERS

from lakebound.formats.contract import Records
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.decode import PROBLEM
from lakebound_spark.batch.record_format import record_format
from lakebound_spark.batch.transform import KAFKA_SCHEMA
from lakebound_spark.real_time.spark_decoder import make_spark_decoder

pytestmark = pytest.mark.spark

CASES: dict[str, dict[str, str]] = {
    "TINYINT": {
        "127": "127",
        "-128": "-128",
        "128": "a number is too large for its type",
        "200": "a number is too large for its type",
        "255": "a number is too large for its type",
        "256": "a number is too large for its type",
    },
    "ARRAY<TINYINT>": {"[1,null]": "[1, null]", "[1,200]": "a number is too large for its type"},
    "MAP<STRING, TINYINT>": {'{"a":1}': "{a -> 1}", '{"a":200}': "a number is too large for its type"},
    "STRUCT<a: ARRAY<STRUCT<b: TINYINT NOT NULL, c: STRING>>>": {
        '{"a":[{"b":1,"c":"x"},null]}': "{[{1, x}, null]}",
        '{"a":[{"b":200}]}': "a number is too large for its type",
    },
    "SMALLINT": {"32767": "32767", "32768": "a value does not fit the type that the schema gives it"},
    "TIMESTAMP": {
        '"2026-02-28T12:30:00Z"': "2026-02-28 12:30:00",
        '"2026"': "2026-01-01 00:00:00",
        '" 2026-02-28 12:30"': "2026-02-28 12:30:00",
        "200": "1970-01-01 00:03:20",
        '"12:30"': "a time has no day",
        '"\\u0031\\u0032:30"': "a time has no day",
        '" 12:30:15.5"': "a time has no day",
        '"\\t12:30"': "a time has no day",
        '"T12:30"': "a time has no day",
        '"T12"': "a time has no day",
        '"1:2:3"': "a time has no day",
        "1700000000000": "a time is a number that is not in seconds; it looks like milliseconds, or finer",
        "-1700000000000000": "a time is a number that is not in seconds; it looks like milliseconds, or finer",
    },
    "ARRAY<TIMESTAMP>": {
        '["2026-02-28", 200, null]': "[2026-02-28 00:00:00, 1970-01-01 00:03:20, null]",
        '["2026-02-28", "12:30"]': "a time has no day",
        "[1700000000000]": "a time is a number that is not in seconds; it looks like milliseconds, or finer",
    },
    "MAP<STRING, TIMESTAMP>": {
        '{"1700000000000":200}': "{1700000000000 -> 1970-01-01 00:03:20}",
        '{"12:30":"2026-02-28"}': "{12:30 -> 2026-02-28 00:00:00}",
        '{"a":"12:30"}': "a time has no day",
    },
    "STRUCT<at: TIMESTAMP, `odd name`: TIMESTAMP>": {
        '{"at":"2026-02-28","odd name":null}': "{2026-02-28 00:00:00, null}",
        '{"odd name":"12:30"}': "a time has no day",
    },
    "TIMESTAMP_NTZ": {
        '"2026-02-28T12:30:00"': "2026-02-28 12:30:00",
        '"12:30"': "a value does not fit the type that the schema gives it",
    },
    "DATE": {
        '"2026-02-28"': "2026-02-28",
        '"2026-2-3"': "2026-02-03",
        '"2026-02-28T12:30:00+01:00"': "2026-02-28",
        '" 2026-02-28 "': "2026-02-28",
        '"2026"': "2026-01-01",
        '"200"': "a date is not written as year, month and day",
        '"19723"': "a date is not written as year, month and day",
        '"2026-02-28Tgarbage"': "a date is not written as year, month and day",
        '"2026-02-28 garbage"': "a date is not written as year, month and day",
        '"12:30"': "a value does not fit the type that the schema gives it",
        "200": "a value does not fit the type that the schema gives it",
    },
    "MAP<STRING, INT>": {'{"a":1,"b":1}': "{a -> 1, b -> 1}", '{"a":1,"a":2}': "a map has a key twice"},
    "ARRAY<MAP<STRING, INT>>": {'[{"a":1},{"a":1}]': "[{a -> 1}, {a -> 1}]", '[{"a":1,"a":1}]': "a map has a key twice"},
    "STRING": {
        "1e400": "a number is too large to be a text",
        "-1e400": "a number is too large to be a text",
        '"Infinity"': "Infinity",
        r'"\"Infinity\""': '"Infinity"',
        "7": "7",
        "123456789012345678901234567890": "123456789012345678901234567890",
    },
    "DECIMAL(5,2)": {
        "1.005": "1.01",
        "-999.994": "-999.99",
        "999.995": "a value does not fit the type that the schema gives it",
        '"12.50"': "12.50",
        '"1,50"': "a number in a text has a comma, which may be a decimal point",
        '"1,234.56"': "a value does not fit the type that the schema gives it",
        '"1,2"': "a number in a text has a comma, which may be a decimal point",
        r'"12\u002c5"': "a number in a text has a comma, which may be a decimal point",
        "'1,50'": "a number in a text has a comma, which may be a decimal point",
    },
    "ARRAY<DECIMAL(9,2)>": {
        '[1.5, "2.25", null]': "[1.50, 2.25, null]",
        '[1.5, "1.234,56"]': "a number in a text has a comma, which may be a decimal point",
    },
    "MAP<STRING, DECIMAL(9,2)>": {
        '{"a,b":"1.5"}': "{a,b -> 1.50}",
        '{"a":"1,5"}': "a number in a text has a comma, which may be a decimal point",
    },
    "STRUCT<price: DECIMAL(9,2), note: STRING>": {
        '{"price":"1.5","note":"a, b"}': "{1.50, a, b}",
        '{"note":"x","price":"1,5"}': "a number in a text has a comma, which may be a decimal point",
    },
}


KINDS = list(CASES)


def spec_of(*kinds: str) -> PipelineSpec:
    schema = ", ".join(f"v{number} {kind}" for number, kind in enumerate(kinds))
    return PipelineSpec.model_validate({**ORDERS, "value": {"format": "json", "schema": schema}})


@pytest.fixture(scope="module")
def landed(session: SparkSession) -> dict[tuple[str, str], str]:
    """What became of each value: how it landed, or why it did not. All are decoded in one job."""
    places = [(kind, text) for kind in KINDS for text in CASES[kind]]
    values = [b'{"v%d":%s}' % (KINDS.index(kind), text.encode()) for kind, text in places]
    rows = [(b"key", value, "orders", 0, offset, None, 0, None) for offset, value in enumerate(values)]
    frame = make_spark_decoder(spec_of(*KINDS), {"orders": "id"}).decode(session.createDataFrame(rows, KAFKA_SCHEMA))
    texts = [F.col(f"_parsed.v{number}").cast("string") for number in range(len(KINDS))]
    told = F.coalesce(F.regexp_replace(PROBLEM, "^does_not_fit\t", ""), *texts)
    found = frame.select("_kafka.offset", told).collect()
    return {places[offset]: text for offset, text in found}


@pytest.mark.parametrize("kind", KINDS)
def test_no_value_lands_as_another_one(landed: dict[tuple[str, str], str], kind: str) -> None:
    assert {text: landed[kind, text] for text in CASES[kind]} == CASES[kind]


OWN_TEXTS = {("STRING", "1e400"), ("STRING", "-1e400")}
"""A text column has these as they were sent; only Spark makes a number of them."""


@pytest.mark.parametrize("kind", KINDS)
def test_in_batches_the_same_ones_go_to_quarantine(kind: str) -> None:
    texts = list(CASES[kind])
    values = [b'{"v0":%s}' % text.encode() for text in texts]
    problems = record_format(spec_of(kind)).decoder().decode(Records([None] * len(values), values)).problems
    expected = {text for text, told in CASES[kind].items() if told.startswith("a ") and (kind, text) not in OWN_TEXTS}
    assert {texts[at] for at in problems} == expected
