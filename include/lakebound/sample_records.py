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
    items = [
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
    """Return a Kafka value made bad from a good record; None is a tombstone."""
    text = value_bytes(record)
    match kind:
        case BadKind.NULL_VALUE:
            return None
        case BadKind.EMPTY_VALUE:
            return b""
        case BadKind.MALFORMED_JSON:
            return text[: len(text) // 2]
        case BadKind.NOT_UTF8:
            return text[:-1] + b',"note":"\xff\xfe\xc3\x28"}'
        case BadKind.DEEPLY_NESTED:
            return text[:-1] + b',"nested":' + b'{"a":' * NESTING_DEPTH + b"1" + b"}" * NESTING_DEPTH + b"}"
        case BadKind.DUPLICATE_KEYS:
            return b'{"' + dataset.key.encode() + b'":"first of two",' + text[1:]
        case BadKind.WRONG_TYPE:
            return value_bytes({**record, dataset.integer: "not a number"})
        case BadKind.OUT_OF_RANGE:
            return value_bytes({**record, dataset.integer: 10**30})
        case BadKind.UNKNOWN_FIELDS:
            return value_bytes({**record, "unknown": {"a": [1, 2]}, "campaign": "spring"})
        case BadKind.ONE_MIB:
            padding = ONE_MIB - len(text) - len(b',"padding":""')
            return text[:-1] + b',"padding":"' + b"x" * padding + b'"}'


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
