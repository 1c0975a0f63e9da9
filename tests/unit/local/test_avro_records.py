"""Demo records in Avro are what the JSON ones are, in the types of the schema."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from lakebound.formats.kinds import schema_reader
from lakebound.formats.schemas import SchemaText
from lakebound.local.avro_records import AvroProduceError, as_avro, avro_encoder
from lakebound.local.sample_records import DATASETS
from lakebound.spec.registry import RegistrySpec

SCHEMAS = Path(__file__).parents[3] / "examples" / "avro_registry" / "schemas"


@pytest.mark.parametrize("file", ["order-1.avsc", "order-2.avsc"])
def test_a_record_is_what_it_was_in_json(file: str) -> None:
    fastavro = pytest.importorskip("fastavro")
    schema = json.loads((SCHEMAS / file).read_text())
    record = DATASETS["orders"].make(random.Random(1), datetime(2026, 1, 1, 12, 0, 0, 123_000, tzinfo=UTC))
    value = as_avro(schema, record)
    assert fastavro.validate({**value, "channel": "web"}, schema)
    assert (value["total"], value["placed_at"].isoformat()) == (
        Decimal(str(record["total"])).quantize(Decimal("0.01")),
        "2026-01-01T12:00:00.123000+00:00",
    )
    assert set(value) == {"order_id", "customer_id", "status", "currency", "total", "placed_at"}


def test_the_newer_schema_only_adds_a_field_with_a_default() -> None:
    first, second = (SchemaText("avro", (SCHEMAS / f"order-{n}.avsc").read_text()) for n in (1, 2))
    reader = schema_reader("avro")
    before, after = reader.columns_of(first, None), reader.columns_of(second, None)
    assert after.names == [*before.names, "channel"] and list(after)[:-1] == list(before)
    reader.payload_decoder(first, second, after, None, is_framed=True)


def test_what_cannot_be_sent_is_said_before_the_first_record() -> None:
    plain = RegistrySpec(url="http://127.0.0.1:1")
    with pytest.raises(AvroProduceError, match="the schema"):
        avro_encoder("shop", plain, "{", "orders")
    token = RegistrySpec.model_validate({"url": "http://127.0.0.1:1", "token": {"file": "shop"}})
    with pytest.raises(AvroProduceError, match="only user and password"):
        avro_encoder("shop", token, '"string"', "orders")


def test_a_registry_that_is_away_is_named() -> None:
    encode = avro_encoder("shop", RegistrySpec(url="http://127.0.0.1:1"), (SCHEMAS / "order-1.avsc").read_text(), "orders")
    record = DATASETS["orders"].make(random.Random(1), datetime.now(UTC))
    with pytest.raises(AvroProduceError, match="registry shop"):
        encode(record)
