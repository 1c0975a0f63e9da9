"""The transforms that are there to be copied give the same rows in the stream as in a batch of their own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch.transform import load_transform, planned_input
from lakebound_spark.testing import land

pytestmark = pytest.mark.spark

SCHEMA = "event_id STRING, device STRING, value DOUBLE, kind STRING, pad STRING"
RECORDS: list[dict[str, Any]] = [
    {"event_id": "000000000001", "device": "device-1", "value": 36.9, "kind": "reading", "pad": "x"},
    {"event_id": "000000000102", "device": "device-2", "value": 37.37, "kind": "straße", "pad": ""},
    {"event_id": "7", "device": None, "value": 1e300, "kind": None, "pad": None},
    {"event_id": None, "device": "device-0", "value": None, "kind": "reading", "pad": "x"},
]


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "encode": [
        ("000000000102", hashed("device-2"), 37.37 * 1.8 + 32, "STRASSE", "000102", ""),
        ("7", None, 1e300 * 1.8 + 32, None, "", None),
    ],
    "enrich": [
        ("000000000001", "device-1", 36.9, "reading", "site-1", "model-1", "x"),
        ("000000000102", "device-2", 37.37, "straße", "site-2", "model-2", ""),
        ("7", None, 1e300, None, None, None, None),
        (None, "device-0", None, "reading", None, None, "x"),
    ],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_stream_and_batch_give_the_same_rows(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path))
    folder = tmp_path / "reference" / "devices"
    folder.mkdir(parents=True)
    numbers = ("1", "2", "3")
    reference = {word: [f"{word}-{number}" for number in numbers] for word in ("device", "site", "model")}
    pq.write_table(pa.table(reference), folder / "devices.parquet")
    spec = PipelineSpec.model_validate(
        {
            "pipeline": "readings",
            "topics": ["readings"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "json", "schema": SCHEMA},
            "freshness": "1s",
            "transform": f"transforms.{name}.clean",
            "tables": [{"format": "delta", "name": "readings"}],
        }
    )
    landed = land(spec, [json.dumps(record) for record in RECORDS])
    streamed = [tuple(value for column, value in row.items() if column != KAFKA_COLUMN) for row in landed.rows]

    rows = [tuple(record.values()) for record in RECORDS]
    kafka = F.lit(None).cast(planned_input(session, spec).schema[KAFKA_COLUMN].dataType)
    batch = load_transform(spec)(session.createDataFrame(rows, SCHEMA).withColumn(KAFKA_COLUMN, kafka))
    made = [tuple(row) for row in batch.drop(KAFKA_COLUMN).collect()]
    assert landed.bad == []
    assert sorted(streamed, key=str) == sorted(made, key=str) == sorted(EXPECTED[name], key=str)
