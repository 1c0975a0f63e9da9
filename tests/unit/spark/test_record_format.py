"""From a pipeline's YAML with schemas of key and value to rows: as the driver decodes them, and as executors get the format."""

from __future__ import annotations

import json
import pickle
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakebound.formats.contract import Records
from lakebound.formats.schemas import SchemaText
from lakebound.landing.read_schemas import SchemaBook
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.record_format import key_schema, named_parts, record_format

ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}, {"name": "city", "type": "string"}]}
TEXTS: dict[str, Any] = {"record": ORDER, "string": "string"}


def written(schema: Any, value: Any) -> bytes:
    content = BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(schema), value)
    return content.getvalue()


@pytest.mark.parametrize(
    ("kind", "key", "sent", "landed"),
    [
        ("record", {}, {"id": 1, "city": "Bern"}, {"key": {"id": 1, "city": "Bern"}}),
        ("record", {"as": "k"}, {"id": 1, "city": "Bern"}, {"k": {"id": 1, "city": "Bern"}}),
        ("record", {"columns": ["city", "id"]}, {"id": 1, "city": "Bern"}, {"city": "Bern", "id": 1}),
        ("string", {"as": "order_id"}, "o-1", {"order_id": "o-1"}),
    ],
)
def test_a_key_with_a_schema_lands_beside_the_value(kind: str, key: dict[str, Any], sent: Any, landed: dict[str, Any]) -> None:
    spec = PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "nowhere:9092"},
            "value": {"format": "avro", "schema_file": "value.avsc"},
            "key": {"format": "avro", "schema_file": "key.avsc", **key},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": "orders"}],
        }
    )
    value = {"type": "record", "name": "Value", "fields": [{"name": "v", "type": "int"}]}
    texts = {"key": SchemaText("avro", json.dumps(TEXTS[kind])), "value": SchemaText("avro", json.dumps(value))}
    read = SchemaBook(spec, {"key": texts["key"], "value": texts["value"]}, {}).spec
    form = record_format(read)
    assert form.columns.names == [*landed, "v"] and named_parts(read) == ("key",)
    assert key_schema(read) is not None
    records = Records([written(TEXTS[kind], sent), None, b""], [written(value, {"v": number}) for number in range(3)], None)
    for one in (form, pickle.loads(pickle.dumps(form))):
        assert one == form and hash(one) == hash(form)
        found = one.decoder().decode(records)
        rows = pa.table(dict(found.columns), schema=form.columns).to_pylist()
        assert rows == [{**landed, "v": 0}, {**dict.fromkeys(landed), "v": 1}]
        assert [*found.problems] == [2] and found.problems[2].detail.startswith("key: ")
