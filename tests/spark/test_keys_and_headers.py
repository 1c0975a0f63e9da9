"""Keys and headers land as columns, the same in every lane and both formats, and a bad record keeps both in quarantine."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from tests.support.streams.long_form import each_value_once, short_form
from tests.support.tables.transform_worlds import LANES, sent
from tests.support.tables.value_lanes import IDS, LandedRows, LaneWorld, Sent

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.decode import PROBLEM, make_decoder
from lakebound_spark.real_time.spark_decoder import make_spark_decoder

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

HEADERS = [
    {"name": "trace-id", "as": "trace_id"},
    {"name": "n", "as": "number", "type": "BIGINT"},
    {"name": "n", "as": "small", "type": "INT"},
    {"name": "raw", "type": "BINARY"},
    {"all": True},
]
Pairs = list[tuple[str, bytes | None]]
SENT_HEADERS: list[Pairs | None] = [
    None,
    [("trace-id", b"a"), ("n", b"7"), ("raw", b"\xff")],
    [("trace-id", b"a"), ("trace-id", "ä".encode())],
    [("n", b"1"), ("n", None), ("raw", None), ("", b"")],
    [(f"x{number}", b"%d" % number) for number in range(1_000)],
    [("trace-id", b"\xff")],
    [("n", b"one")],
    [("n", b"2147483648")],
    [("n", b"+5\n")],
]
JSON_KEY = {"format": "json", "schema": "id BIGINT NOT NULL, at STRUCT<day: DATE>", "columns": ["at", "id"]}
NO_KEY = "key: the record has no key, and its columns must not be null"


class Wrong(str):
    """The beginning of what is wrong."""


KEYS: dict[str, tuple[dict[str, Any], dict[bytes | None, Any]]] = {
    "string": (
        {"format": "string"},
        {None: None, b"": "", "ä\x00".encode(): "ä\x00", b"\xff": Wrong("key: the value is not UTF-8")},
    ),
    "bytes": ({"format": "bytes", "as": "k"}, {None: None, b"": b"", b"\xff": b"\xff"}),
    "json": (
        {**JSON_KEY, "columns": None},
        {b'{"id": 1}': {"id": 1, "at": None}, b"{}": Wrong("key: required but missing or null: id")},
    ),
    "columns": (JSON_KEY, {b'{"id": 2}': 2, None: Wrong(NO_KEY), b"": Wrong("key: the value has no bytes")}),
}
VALUES: dict[bytes | None, Any] = {b'{"v": 1}': 1, None: None, b"{": Wrong("character 2: the text ends")}
TABLES = [{"format": "delta", "name": "a.rows"}, {"format": "iceberg", "name": "a.rows"}]


def spec_of(key: dict[str, Any] | None, **more: Any) -> PipelineSpec:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "v INT"},
        "headers": HEADERS,
        "null_values": "row",
        "freshness": "1s",
        "tables": TABLES,
    }
    return PipelineSpec.model_validate(body | ({} if key is None else {"key": key}) | more)


def batch_of(keys: dict[bytes | None, Any]) -> Sent:
    cases = [*product(keys, VALUES, SENT_HEADERS)]
    one = sent(0, [value for _, value, _ in cases])
    return Sent(0, one.values, one.stamps_ms, [key for key, *_ in cases], [headers for *_, headers in cases])


def expected_headers(headers: Pairs) -> dict[str, Any] | Wrong:
    """Return the columns; it knows nothing of Lakebound's decoder."""
    last = dict(headers)
    try:
        text = None if last.get("trace-id") is None else last["trace-id"].decode()  # type: ignore[union-attr]
    except UnicodeDecodeError:
        return Wrong("header trace-id: is not UTF-8")
    number = last.get("n")
    if number is not None and number != b"7":
        return Wrong("header n: ")
    read = None if number is None else int(number)
    every = [{"name": name, "value": value} for name, value in headers]
    return {"trace_id": text, "number": read, "small": read, "raw": last.get("raw"), "headers": every}


def landed(session: SparkSession, folder: Path, spec: PipelineSpec, way: Lane, batch: Sent, **world: Any) -> LandedRows:
    made = LaneWorld(session, folder, spec, way, **world)
    try:
        made.land(batch)
        return made.read()
    finally:
        made.close()


@pytest.mark.parametrize(
    ("way", "kind"),
    short_form([*product(["direct"], KEYS), *product(["driver", "cluster"], KEYS)], lambda case: case),
)
def test_each_record_lands_with_key_and_headers_or_keeps_them_in_quarantine(
    session: SparkSession, tmp_path: Path, kind: str, way: Lane
) -> None:
    key, keys = KEYS[kind]
    spec, batch = spec_of(key), batch_of(keys)
    found = landed(session, tmp_path, spec, way, batch)
    assert batch.keys is not None and batch.headers is not None
    column = {"string": "key", "bytes": "k", "json": "key", "columns": "id"}[kind]
    good = 0
    for offset, (sent_key, value, headers) in enumerate(zip(batch.keys, batch.values, batch.headers, strict=True)):
        told = (VALUES[value], keys[sent_key], expected_headers(headers or []))
        wrong = [one for one in told if isinstance(one, Wrong)]
        if wrong:
            [(_, error, raw)] = found.bad[offset]
            assert error.startswith(wrong[0]) and raw == value
            assert found.raw[offset] == (sent_key, headers or [])
            continue
        good += 1
        for table in spec.tables:
            [row] = found.tables[table.id][offset]
            row.pop("_kafka")
            rest = {name: one for name, one in row.items() if name not in (column, "at")}
            assert (row[column], rest) == (told[1], {"v": told[0], **told[2]}), (table.id, offset)  # type: ignore[dict-item]
    assert good >= 10 and len(found.bad) >= 10


@pytest.mark.parametrize("way", LANES)
def test_a_transform_gets_them_as_columns(session: SparkSession, tmp_path: Path, way: Lane) -> None:
    def clean(records: DataFrame) -> DataFrame:
        first = F.try_element_at("headers", F.lit(1)).getField("name")
        return records.select("_kafka", F.upper("key").alias("key"), first.alias("first")).where("number is null or number > 0")

    batch = Sent(0, [b"{}", None, b"{}"], [0] * 3, [b"a", b"b", None], [[("n", b"7")], [("x", b"")], None])
    found = landed(session, tmp_path, spec_of({"format": "string"}), way, batch, transform=clean, has_transform=True)
    for table in found.tables.values():
        rows = [(row["key"], row["first"]) for offset in sorted(table) for row in table[offset]]
        assert rows == [("A", "n"), ("B", "x"), (None, None)]


@each_value_once
@pytest.mark.parametrize("kind", ["string", "bytes"])
@pytest.mark.parametrize("value", ["json", "string", "bytes"])
def test_in_real_time_each_record_becomes_what_it_becomes_in_batches(session: SparkSession, kind: str, value: str) -> None:
    key, keys = KEYS[kind]
    body = {"format": value, **({"schema": "v INT"} if value == "json" else {})}
    more = {"freshness": "real_time", "tables": [], "to_topics": [{"topic": "out"}]}
    spec, batch = spec_of(key, value=body, **more), batch_of(keys)
    frame = batch.frame(session)
    kept = ("_kafka", "_key", "_value", "_headers", "_parsed", PROBLEM)
    batches, real = (
        sorted(map(repr, json.loads(rows_as_json(one.decode(frame).select(*kept)))))
        for one in (make_decoder(spec, IDS), make_spark_decoder(spec, IDS))
    )
    assert len(batches) == len(batch.values) and batches == real


def rows_as_json(frame: DataFrame) -> str:
    """Return rows as JSON; of a bad record only its reason and where it is, of a good one its columns."""
    reason = F.substring_index(PROBLEM, "\t", 1)
    row = F.struct("_kafka.offset", reason.alias("reason"), F.when(F.col(PROBLEM).isNull(), F.col("_parsed")).alias("row"))
    (text,) = frame.select(F.to_json(F.collect_list(row))).first() or ("[]",)
    return str(text)
