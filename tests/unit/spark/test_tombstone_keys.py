"""The key of a tombstone in a format with a schema deletes no row: its bytes may look like the text of another key."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from lakebound.formats.headers import HEADERS_TYPE
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.decode import HEADERS, KEY
from lakebound_spark.batch.tombstones import REASON, Tombstones

NUMBERS = range(-70, 71)


def as_avro(kind: str, value: Any) -> bytes:
    content = BytesIO()
    fastavro.schemaless_writer(content, kind, value)
    return content.getvalue()


def tombstones(keys: list[bytes | None], header: bytes | None) -> pa.Table:
    places = [
        {"topic": "t", "topic_id": "id", "partition": 0, "offset": at, "timestamp": 0, "ordinal": 0} for at in range(len(keys))
    ]
    headers = [[] if header is None else [{"name": "__key_schema_id", "value": header}]] * len(keys)
    columns = [pa.array(places, KAFKA_TYPE), pa.array(keys, pa.binary()), pa.array(headers, HEADERS_TYPE)]
    return pa.table(columns, names=[KAFKA_COLUMN, KEY, HEADERS])


@pytest.mark.parametrize(("have_schemas", "header"), [(True, None), (False, b"\x01" + b"g" * 16), (True, b"\x01")])
def test_no_avro_key_names_a_row(have_schemas: bool, header: bytes | None) -> None:
    keys: list[bytes | None] = [as_avro("long", one) for one in NUMBERS]
    keys += [as_avro("string", f"k{one}") for one in NUMBERS]
    for kind in (pa.int64(), pa.string()):
        found = Tombstones("id", kind, None, have_schemas=have_schemas).judged(tombstones(keys, header))
        assert found.rows.num_rows == 0 and found.bad.num_rows == len(keys)
        assert set(found.bad["reason"].to_pylist()) == {REASON}
        assert "a format with a schema" in found.bad["error"][0].as_py()


def test_a_text_without_a_schema_does() -> None:
    found = Tombstones("id", pa.int64(), None).judged(tombstones([b"25", None], None))
    assert (found.rows.num_rows, found.bad.num_rows) == (1, 1)
    assert "neither a value nor a key" in found.bad["error"][0].as_py()
