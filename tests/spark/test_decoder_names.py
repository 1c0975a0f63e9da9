"""Columns of any name, and the values at the edges of types, come out of the executors as the decoder gives them in the driver.

Also where a record was found to be bad in another way, and where a task gets no record at all.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakebound.formats.contract import Records
from lakebound_spark.batch.decode import PROBLEM, Decoder, kafka_struct
from lakebound_spark.batch.record_format import json_format
from lakebound_spark.batch.transform import KAFKA_SCHEMA

pytestmark = pytest.mark.spark

CASES: dict[str, tuple[str, list[bytes | None]]] = {
    "names": (
        '`a.b` INT, `a``b` STRING, `a"b` DATE, `é😀` STRING NOT NULL, `_parsed` INT, `_problem` STRING, `value` STRING, '
        "`key` STRING, `offset` INT, `_value_bytes` INT",
        [
            '{"a.b":1,"a`b":"x","a\\"b":"2026-01-01","é😀":"v","_parsed":3,"_problem":"p","value":"v","key":"k"}'.encode(),
            '{"é😀":"\\u0000x\\t","offset":9,"_value_bytes":7}'.encode(),
            '{"a.b":"x","é😀":"v"}'.encode(),
            b'{"new\\nline\\t":1}',
            b"",
            None,
        ],
    ),
    "numbers inside": (
        "s STRUCT<x: INT NOT NULL, `y.z`: ARRAY<STRUCT<t: TIMESTAMP NOT NULL, n: TIMESTAMP_NTZ, d: DATE>>> NOT NULL, "
        "m MAP<STRING, DECIMAL(38,38)>, f FLOAT, d DOUBLE",
        [
            b'{"s":{"x":1,"y.z":[{"t":"0001-01-01T00:00:00Z","n":"9999-12-31T23:59:59.999999","d":"0001-01-01"},null,{}]}}',
            b'{"s":{"x":null,"y.z":null},"m":{"a":0.99999999999999999999999999999999999999,"b":null},"f":0.1,"d":"NaN"}',
            b'{"s":{},"m":{"":-0.5,"\\u0000":0.1},"f":1e-46,"d":5e-324}',
            b'{"s":{},"f":16777217.00000000000000001,"d":-0.0}',
            b'{"s":{},"f":3.4028235677973366e38}',
            b'{"s":{},"m":{"a":1}}',
            b'{"s":null}',
        ],
    ),
    "nothing inside": (
        "e STRUCT<>, l ARRAY<ARRAY<STRING>>, mm MAP<STRING, MAP<STRING, BINARY>>, t TIMESTAMP, n TIMESTAMP_NTZ, y TINYINT",
        [
            b'{"e":{},"l":[[],null,["a",null,1]],"mm":{"a":{},"b":null,"c":{"d":"AAEC"}},"n":"0001-01-01","y":-128}',
            b'{"e":null,"t":"9999-12-31T23:59:59.999999999Z","l":[["\\ud83d\\ude00"]]}',
            b'{"e":{"q":1},"t":-62135596800}',
            b'{"e":1}',
            b"{}",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_executors_give_what_the_decoder_gives(session: SparkSession, case: str) -> None:
    ddl, given = CASES[case]
    values = given * 20
    form = json_format(StructType.fromDDL(ddl))
    alone = form.decoder().decode(Records([b"k"] * len(values), values))
    rows = iter(pa.table(dict(alone.columns)).to_pylist())
    expected: dict[int, Any] = {
        at: f"{alone.problems[at].reason}\t{alone.problems[at].detail}" if at in alone.problems else next(rows)
        for at in range(len(values))
    }
    records = [(b"k", value, "t", 0, offset, None, 0, None) for offset, value in enumerate(values)]
    frame = session.createDataFrame(records, KAFKA_SCHEMA)
    decoder = Decoder(form, kafka_struct({"t": "id"}), is_null_skipped=False)
    assert found(decoder, frame.repartition(3)) == told(expected)
    assert found(decoder, frame.where("offset < 0")) == {}
    refused = {"topic": ["t"], "partition": pa.array([0], pa.int32()), "offset": pa.array([0], pa.int64()), "problem": ["x\ty"]}
    assert found(decoder.refusing(pa.table(refused)), frame) == told(expected | {0: "x\ty"})


def found(decoder: Decoder, frame: Any) -> dict[int, str]:
    """What became of each record, by its offset, as text."""
    got = decoder.decode(frame).select("_kafka.offset", PROBLEM, "_parsed").toArrow().to_pylist()
    assert len({row["offset"] for row in got}) == len(got)
    return {row["offset"]: repr(row["_parsed"] if row[PROBLEM] is None else row[PROBLEM]) for row in got}


def told(expected: dict[int, Any]) -> dict[int, str]:
    """The same of what is expected."""
    return {at: repr(one) for at, one in expected.items()}
