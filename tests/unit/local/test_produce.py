"""Sample records are repeatable and fit their schema; bad ones are bad in the way they say."""

from __future__ import annotations

import hashlib
import json
import random
from datetime import UTC, datetime

import pytest

from lakebound.local.produce import Feed, _Acknowledgements, _progress, _Stream, journal_line, producer_config
from lakebound.local.sample_records import DATASETS, ONE_MIB, READABLE_KINDS, BadKind, bad_value, key_bytes, value_bytes

MOST_LEVELS = 998
"""Deeper objects go to quarantine."""
NOW = datetime(2026, 11, 20, 14, 5, 6, 789_000, tzinfo=UTC)


def stream(feed: Feed, seed: int = 1) -> _Stream:
    return _Stream(feed, random.Random(seed))


@pytest.mark.parametrize("name", DATASETS)
def test_the_same_seed_and_time_give_the_same_records(name: str) -> None:
    feed = Feed(name, bad_share=0.2)
    first, second, other = stream(feed), stream(feed), stream(feed, seed=2)

    records = [first.next(NOW) for _ in range(200)]

    assert [second.next(NOW) for _ in range(200)] == records
    assert [other.next(NOW) for _ in range(200)] != records


def test_an_order_has_the_fields_of_its_schema() -> None:
    record = DATASETS["orders"].make(random.Random(3), NOW)

    assert {name: type(value) for name, value in record.items()} == {
        "order_id": str,
        "customer_id": int,
        "status": str,
        "currency": str,
        "total": float,
        "placed_at": str,
        "items": list,
    }
    assert {name: type(value) for name, value in record["items"][0].items()} == {
        "sku": str,
        "quantity": int,
        "unit_price": float,
    }
    assert record["placed_at"] == "2026-11-20T14:05:06.789Z"
    assert record["total"] == round(sum(item["quantity"] * item["unit_price"] for item in record["items"]), 2)


def test_orders_have_five_items_on_average() -> None:
    chance = random.Random(4)
    counts = [len(DATASETS["orders"].make(chance, NOW)["items"]) for _ in range(2000)]

    assert 4.7 < sum(counts) / len(counts) < 5.3


def test_a_sensor_reading_has_the_fields_of_its_schema_and_never_comes_from_the_future() -> None:
    chance = random.Random(5)
    records = [DATASETS["sensor_readings"].make(chance, NOW) for _ in range(2000)]

    assert {name: type(value) for name, value in records[0].items()} == {
        "device_id": str,
        "sensor": str,
        "event_time": str,
        "value": float,
        "battery_percent": int,
        "firmware": str,
    }
    times = [datetime.fromisoformat(record["event_time"]) for record in records]
    assert max(times) <= NOW
    assert len({time.date() for time in times}) >= 2, "late readings fill older days"


@pytest.mark.parametrize("name", DATASETS)
def test_each_bad_kind_is_bad_in_its_own_way(name: str) -> None:
    dataset = DATASETS[name]
    record = dataset.make(random.Random(6), NOW)
    bad = {kind: bad_value(kind, dataset, record) for kind in BadKind}

    assert bad[BadKind.NULL_VALUE] is None
    assert bad[BadKind.EMPTY_VALUE] == b""
    with pytest.raises(json.JSONDecodeError):
        json.loads(bad[BadKind.MALFORMED_JSON] or b"")
    with pytest.raises(UnicodeDecodeError):
        (bad[BadKind.NOT_UTF8] or b"").decode()
    assert json.loads(bad[BadKind.WRONG_TYPE] or b"")[dataset.integer] == "not a number"
    assert json.loads(bad[BadKind.OUT_OF_RANGE] or b"")[dataset.integer] > 2**63
    assert json.loads(bad[BadKind.UNKNOWN_FIELDS] or b"").keys() > record.keys()
    pairs = json.loads(bad[BadKind.DUPLICATE_KEYS] or b"", object_pairs_hook=list)
    assert [key for key, _ in pairs].count(dataset.key) == 2
    assert (bad[BadKind.DEEPLY_NESTED] or b"").count(b"{") > 2000
    assert len(bad[BadKind.ONE_MIB] or b"") == ONE_MIB
    assert json.loads(bad[BadKind.ONE_MIB] or b"").keys() > record.keys()


@pytest.mark.parametrize("name", DATASETS)
def test_what_is_called_readable_is_json_of_the_schemas_types(name: str) -> None:
    dataset = DATASETS[name]
    record = dataset.make(random.Random(6), NOW)

    def can_be_read(value: bytes | None) -> bool:
        # Not by json's own bound, which is Python's limit of calls: who decodes nested records raises it for the process.
        if (value or b"").count(b"{") > MOST_LEVELS:
            return False
        try:
            number = json.loads((value or b"").decode())[dataset.integer]
        except ValueError:
            return False
        return isinstance(number, int) and number < 2**31

    assert {kind for kind in BadKind if can_be_read(bad_value(kind, dataset, record))} == READABLE_KINDS


def test_progress_counts_what_goes_to_quarantine_apart_from_what_is_only_unusual() -> None:
    kinds = (BadKind.NULL_VALUE, BadKind.UNKNOWN_FIELDS, BadKind.EMPTY_VALUE)
    source = stream(Feed("orders", bad_list=kinds))
    for _ in range(5):
        source.next(NOW)

    assert _progress(1.0, [source], _Acknowledgements(None)).endswith(", 2 of them bad, 1 unusual but readable")
    assert _progress(1.0, [stream(Feed("orders"))], _Acknowledgements(None)).endswith("/s)")


def test_listed_bad_records_come_first_and_once() -> None:
    kinds = (BadKind.NULL_VALUE, BadKind.EMPTY_VALUE)
    source = stream(Feed("orders", bad_list=kinds))

    values = [source.next(NOW)[1] for _ in range(5)]

    assert values[:2] == [None, b""]
    assert all(json.loads(value or b"") for value in values[2:])
    assert source.bad == {"null_value": 1, "empty_value": 1}


def test_the_share_of_bad_records_is_kept() -> None:
    source = stream(Feed("orders", bad_share=0.1, bad_kinds=(BadKind.EMPTY_VALUE,)))

    values = [source.next(NOW)[1] for _ in range(5000)]

    assert 400 < values.count(b"") < 600
    assert source.bad == {"empty_value": values.count(b"")}


@pytest.mark.parametrize(
    ("feed", "sent", "elapsed_seconds", "due"),
    [
        (Feed("orders", 100), 0, 0.0, 1),
        (Feed("orders", 100), 10, 0.2, 11),
        (Feed("orders", 100), 50, 0.2, 0),
        (Feed("orders", 100_000), 0, 1.0, 500),
        (Feed("orders", 0), 0, 0.0, 500),
        (Feed("orders", 0, count=30), 20, 0.0, 10),
        (Feed("orders", 100, count=30), 30, 9.0, 0),
    ],
)
def test_a_feed_sends_what_is_due(feed: Feed, sent: int, elapsed_seconds: float, due: int) -> None:
    source = stream(feed)
    source.sent = sent

    assert source.due(elapsed_seconds) == due


def test_a_record_and_its_bad_form_have_the_same_key() -> None:
    good, bad = stream(Feed("orders")), stream(Feed("orders", bad_list=(BadKind.MALFORMED_JSON,)))

    assert good.next(NOW)[0] == bad.next(NOW)[0]


def test_the_journal_names_the_value_by_its_sum_and_a_null_by_a_word() -> None:
    value = value_bytes({"a": 1})

    assert journal_line("t", 2, 40, value, 1700) == f"t,2,40,{hashlib.sha256(value).hexdigest()},1700\n"
    assert journal_line("t", 2, 41, None, 1700) == "t,2,41,null,1700\n"


def test_a_device_stays_in_its_partition() -> None:
    dataset = DATASETS["sensor_readings"]

    assert key_bytes(dataset, {"device_id": "device-0007"}) == b"device-0007"


def test_the_producer_is_idempotent_whatever_the_connection_says() -> None:
    config = producer_config({"bootstrap.servers": "b:1", "acks": "0", "enable.idempotence": "false"})

    assert (config["acks"], config["enable.idempotence"], config["bootstrap.servers"]) == ("all", "true", "b:1")
