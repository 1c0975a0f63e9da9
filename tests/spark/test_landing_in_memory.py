"""What tests of a pipeline and `lakebound try` say of records is what the stream makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import fastavro
import pytest
from pyspark.sql import SparkSession

import transforms
from lakebound.settings import load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark import testing
from lakebound_spark.testing import land

pytestmark = pytest.mark.spark

TRANSFORM = """
from pyspark.sql import functions as F
from lakebound_spark.columns import explode

def spread(records):
    days = records.where("n <> 7").withColumn("day", F.date_add(F.lit("2026-01-01").cast("date"), F.col("n")))
    return explode(days, "tags", "tag")
"""


def test_records_give_rows_or_reasons(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_transform_of_this_test.py").write_text(TRANSFORM)
    monkeypatch.setattr(transforms, "__path__", [*transforms.__path__, str(tmp_path)])
    spec = PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "json", "schema": "n INT NOT NULL, tags ARRAY<STRING>"},
            "freshness": "1s",
            "transform": "transforms.a_transform_of_this_test.spread",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )
    records = ['{"n": 1, "tags": ["a", "b"]}', '{"n": 7, "tags": ["a"]}', '{"n": 99999999, "tags": ["c"]}', '{"n": "1"}', None]
    landed = land(spec, records)
    places = [(row["_kafka"]["offset"], row["_kafka"]["ordinal"], row["tag"], str(row["day"])) for row in landed.rows]
    assert places == [(0, 0, "a", "2026-01-02"), (0, 1, "b", "2026-01-02")]
    assert sorted(landed.bad) == [
        "does_not_fit: n: '1' is not an INT; it is a text, not a number",
        "null_value: the record has no value",
        "transform: day: outside of the years 1 to 9999",
    ]


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "n", "type": "int"}, {"name": "tags", "type": {"type": "array", "items": "string"}}],
}


def test_records_of_a_schema_file_give_rows_or_reasons(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "order.avsc").write_text(json.dumps(ORDER))
    places = replace(load_settings(), pipelines=tmp_path / "pipelines")
    monkeypatch.setattr(testing, "load_settings", lambda: places)
    spec = PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "avro", "schema_file": "order.avsc"},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )
    content = BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(ORDER), {"n": 7, "tags": ["a", "b"]})
    landed = land(spec, [content.getvalue(), content.getvalue()[:-1], None])
    assert [(row["n"], row["tags"], row["_kafka"]["offset"]) for row in landed.rows] == [(7, ["a", "b"], 0)]
    assert len(landed.bad) == 2
    assert "null_value: the record has no value" in landed.bad
