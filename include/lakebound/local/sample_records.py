"""Invented records of the example topics, good ones and bad ones, repeatable from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

Record = dict[str, Any]

ONE_MIB = 1024 * 1024
NESTING_DEPTH = 2000

CURRENCIES = ("EUR", "USD", "GBP", "CHF", "SEK")
STATUSES = ("placed", "paid", "shipped", "delivered", "cancelled")
STATUS_WEIGHTS = (40, 25, 18, 14, 3)
CUSTOMERS = 50_000
ARTICLES = 4_000

# Sensor → (usual value, spread).
SENSORS: Mapping[str, tuple[float, float]] = {
    "temperature": (21.0, 4.0),
    "humidity": (48.0, 12.0),
    "pressure": (1013.0, 9.0),
    "vibration": (0.4, 0.2),
}
DEVICES = 300
FIRMWARES = ("2.8.1", "2.9.0", "2.9.3", "3.0.0-rc1")
LATE_SHARE = 0.005


class BadKind(StrEnum):
    """The ways in which a record can be bad, or merely unexpected."""

    MALFORMED_JSON = "malformed_json"
    WRONG_TYPE = "wrong_type"
    NULL_VALUE = "null_value"
    EMPTY_VALUE = "empty_value"
    NOT_UTF8 = "not_utf8"
    OUT_OF_RANGE = "out_of_range"
    DEEPLY_NESTED = "deeply_nested"
    DUPLICATE_KEYS = "duplicate_keys"
    UNKNOWN_FIELDS = "unknown_fields"
    ONE_MIB = "one_mib"


READABLE_KINDS = frozenset({BadKind.DUPLICATE_KEYS, BadKind.UNKNOWN_FIELDS, BadKind.ONE_MIB})
"""Records that are unexpected, and land: of a field that comes twice the last one, and without unknown fields."""


@dataclass(frozen=True)
class Dataset:
    """One kind of records.

    Attributes:
        name: Also the topic of the example pipeline.
        key: The field whose text is the Kafka key.
        integer: The field that bad records put text, or a number beyond every integer type, into.
        make: Returns a record, given a source of chance and the time.
    """

    name: str
    key: str
    integer: str
    make: Callable[[random.Random, datetime], Record]


def order(chance: random.Random, now: datetime) -> Record:
    """Return an order with one to nine items, five on average."""
    items: list[Record] = [
        {
            "sku": f"SKU-{chance.randrange(ARTICLES):05d}",
            "quantity": chance.choices((1, 2, 3, 4, 6, 12), (60, 20, 8, 5, 4, 3))[0],
            "unit_price": round(chance.lognormvariate(3.0, 0.8), 2),
        }
        for _ in range(chance.randint(1, 9))
    ]
    return {
        "order_id": f"{chance.getrandbits(80):020x}",
        "customer_id": chance.randrange(1, CUSTOMERS),
        "status": chance.choices(STATUSES, STATUS_WEIGHTS)[0],
        "currency": chance.choice(CURRENCIES),
        "total": round(sum(item["quantity"] * item["unit_price"] for item in items), 2),
        "placed_at": _iso(now),
        "items": items,
    }


def sensor_reading(chance: random.Random, now: datetime) -> Record:
    """Return a measurement; a few arrive hours late, as from a device that was out of reach."""
    device = chance.randrange(DEVICES)
    sensor = chance.choice(tuple(SENSORS))
    usual, spread = SENSORS[sensor]
    late = timedelta(hours=chance.uniform(1, 36)) if chance.random() < LATE_SHARE else timedelta()
    return {
        "device_id": f"device-{device:04d}",
        "sensor": sensor,
        "event_time": _iso(now - late - timedelta(milliseconds=chance.expovariate(1 / 40))),
        "value": round(chance.gauss(usual, spread), 3),
        "battery_percent": chance.randint(5, 100),
        "firmware": FIRMWARES[device % len(FIRMWARES)],
    }


DATASETS: Mapping[str, Dataset] = {
    "orders": Dataset("orders", "order_id", "customer_id", order),
    "sensor_readings": Dataset("sensor_readings", "device_id", "battery_percent", sensor_reading),
}


def key_bytes(dataset: Dataset, record: Record) -> bytes:
    """Return the Kafka key of a record."""
    return str(record[dataset.key]).encode()


def value_bytes(record: Record) -> bytes:
    """Return the Kafka value of a good record: compact JSON."""
    return json.dumps(record, separators=(",", ":")).encode()


def bad_value(kind: BadKind, dataset: Dataset, record: Record) -> bytes | None:
    """Return a Kafka value made bad from a good record; None is a tombstone.

    Args:
        kind: In which way the value is bad.
        dataset: Kind of the record; it says which field is spoilt.
        record: The good record, by field name; it is not changed.
    """
    return _SPOILERS[kind](dataset, record)


def _with_field(record: Record, raw: bytes) -> bytes:
    """Return the record's JSON with a further field, given as the bytes of ``"name":value``."""
    return value_bytes(record)[:-1] + b"," + raw + b"}"


def _nested(record: Record) -> bytes:
    return _with_field(record, b'"nested":' + b'{"a":' * NESTING_DEPTH + b"1" + b"}" * NESTING_DEPTH)


def _padded(record: Record) -> bytes:
    room = ONE_MIB - len(_with_field(record, b'"padding":""'))
    return _with_field(record, b'"padding":"' + b"x" * room + b'"')


def _first_half(text: bytes) -> bytes:
    return text[: len(text) // 2]


_SPOILERS: Mapping[BadKind, Callable[[Dataset, Record], bytes | None]] = {
    BadKind.MALFORMED_JSON: lambda _, record: _first_half(value_bytes(record)),
    BadKind.WRONG_TYPE: lambda dataset, record: value_bytes({**record, dataset.integer: "not a number"}),
    BadKind.NULL_VALUE: lambda _, __: None,
    BadKind.EMPTY_VALUE: lambda _, __: b"",
    BadKind.NOT_UTF8: lambda _, record: _with_field(record, b'"note":"\xff\xfe\xc3\x28"'),
    BadKind.OUT_OF_RANGE: lambda dataset, record: value_bytes({**record, dataset.integer: 10**30}),
    BadKind.DEEPLY_NESTED: lambda _, record: _nested(record),
    BadKind.DUPLICATE_KEYS: lambda dataset, record: _with_field(record, f'"{dataset.key}":"second of two"'.encode()),
    BadKind.UNKNOWN_FIELDS: lambda _, record: value_bytes({**record, "unknown": {"a": [1, 2]}, "campaign": "spring"}),
    BadKind.ONE_MIB: lambda _, record: _padded(record),
}


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
