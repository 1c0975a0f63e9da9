"""What a store must hold of made-up records, and what is in it. It imports nothing of Lakebound.

Record n is a payment of the card n modulo 7, one second after the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
import redis

CARDS = 7


def card(number: int) -> str:
    """Return the key of a record."""
    return f"card-{number % CARDS}"


def amount(number: int) -> int:
    """Return the amount of a record."""
    return number * 3 + 1


def expected_rows(end: int) -> dict[str, int]:
    """Return the number of the newest record of each key, of the records before ``end``."""
    return {card(number): number for number in range(end)}


def expected_counts(end: int, first_second: int, buckets: dict[int, int]) -> Counter[tuple[str, int, int, str]]:
    """Return the counts and sums by key, window, begin of the bucket and name, of the records before ``end``.

    Args:
        end: Number of the first record that is not among them.
        first_second: Time of record 0.
        buckets: Length of the buckets by length of the window, in seconds.
    """
    found: Counter[tuple[str, int, int, str]] = Counter()
    for number in range(end):
        second = first_second + number
        for window, length in buckets.items():
            place = (card(number), window, second - second % length)
            found[*place, "count"] += 1
            found[*place, "amount"] += amount(number)
    return found


def rows_in_redis(client: redis.Redis, name: str) -> dict[str, int]:
    """Return the number of the record that each key of a store holds."""
    keys: Any = client.keys(f"{name}:*")
    held: dict[bytes, Any] = {key: client.hgetall(key) for key in keys}
    assert all(key == name.encode() + b":" + row[b"card"] for key, row in held.items())
    return {row[b"card"].decode(): int(row[b"number"]) for row in held.values()}


def counts_in_redis(client: redis.Redis, name: str, seconds: dict[str, int]) -> Counter[tuple[str, int, int, str]]:
    """Return the counters of a store, as ``expected_counts`` does.

    Args:
        client: Of the server.
        name: Of the store.
        seconds: Length of each window, by its name.
    """
    found: Counter[tuple[str, int, int, str]] = Counter()
    keys: Any = client.keys(f"{name}:*")
    for key in keys:
        held: Any = client.hgetall(key)
        for field, value in held.items():
            window, begin, what = field.decode().split(":")
            found[key.decode().partition(":")[2], seconds[window], int(begin), what] = int(value)
    return found


def rows_in_postgres(connection: psycopg.Connection[Any], name: str) -> dict[str, int]:
    """Return the number of the record that each key of a store holds."""
    return dict(connection.execute(f"SELECT card, number FROM {name}".encode()).fetchall())


def counts_in_postgres(connection: psycopg.Connection[Any], name: str) -> Counter[tuple[str, int, int, str]]:
    """Return the counters of a store, as ``expected_counts`` does."""
    statement = f"SELECT card, window_seconds, extract(epoch from bucket)::bigint, count, amount FROM {name}"
    found: Counter[tuple[str, int, int, str]] = Counter()
    for key, window, begin, count, total in connection.execute(statement.encode()).fetchall():
        found[key, window, begin, "count"] = count
        found[key, window, begin, "amount"] = total
    return found


def folded(records: list[tuple[str, int | None]]) -> dict[str, int]:
    """Return what a store holds of records of key and number, one after the other; of a tombstone the number is None."""
    held: dict[str, int] = {}
    for key, number in records:
        if number is None:
            held.pop(key, None)
        else:
            held[key] = number
    return held


Contents = dict[tuple[str, ...], dict[str, int | str]]
"""What is in a store, whatever it holds: the fields of each key, or the counters of each key, window and begin of a bucket."""
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def seconds(interval: str) -> int:
    """Return the seconds of 5s, 15m or 24h."""
    return int(interval[:-1]) * _SECONDS[interval[-1]]


def expected_contents(yaml: Mapping[str, Any], start: int, end: int, first_second: int) -> Contents:
    """Return what a store holds of the records from ``start`` up to ``end`` alone.

    Args:
        yaml: What the YAML says of the store: ``key``, and ``columns`` or ``counters``.
        start: Number of the first record.
        end: Number of the first record that is not among them.
        first_second: Time of record 0.
    """
    found: Contents = {}
    for number in range(start, end):
        record: dict[str, int | str] = {"card": card(number), "number": number, "amount": amount(number)}
        key, second = str(record[yaml["key"]]), first_second + number
        counters = yaml.get("counters")
        if counters is None:
            found[(key,)] = {name: record[name] for name in (yaml["key"], *yaml["columns"])}
            continue
        for window, bucket in counters["windows"].items():
            held = found.setdefault((key, str(seconds(window)), str(second - second % seconds(bucket))), {})
            for what, more in {"count": 1, **{name: record[name] for name in counters.get("sums", ())}}.items():
                held[what] = int(held.get(what, 0)) + int(more)
    return found


def contents_in_redis(client: redis.Redis, name: str) -> Contents:
    """Return what the keys of a store hold."""
    found: Contents = {}
    keys: Any = client.keys(f"{name}:*")
    for key in keys:
        held: Any = client.hgetall(key)
        for field, value in held.items():
            parts, text = field.decode().split(":"), value.decode()
            place = (key.decode().partition(":")[2], *((str(seconds(parts[0])), parts[1]) if len(parts) == 3 else ()))
            found.setdefault(place, {})[parts[-1]] = text if parts[-1] == "card" else int(text)
    return found


def contents_in_postgres(connection: psycopg.Connection[Any], name: str, key: str) -> Contents:
    """Return what the table of a store holds; columns without a value are left out."""
    found: Contents = {}
    cursor = connection.execute(f"SELECT * FROM {name}".encode())
    names = [column.name for column in cursor.description or ()]
    for row in cursor.fetchall():
        values = {column: value for column, value in zip(names, row, strict=True) if value is not None}
        if "bucket" not in values:
            found[(str(values[key]),)] = values
            continue
        begin = int(values.pop("bucket").timestamp())
        found[str(values.pop(key)), str(values.pop("window_seconds")), str(begin)] = values
    return found


def folded_contents(yaml: Mapping[str, Any], rows: Iterable[Mapping[str, Any]], now: float) -> Contents:
    """Return what a store holds of rows, one after the other.

    Args:
        yaml: What the YAML says of the store: ``key``, and ``columns`` (perhaps ``delete_if``) or ``counters``.
        rows: Values by column; a time is a datetime.
        now: In seconds: buckets that have left their window by then are not there.
    """
    found: Contents = {}
    for row in rows:
        key, counters = str(row[yaml["key"]]), yaml.get("counters")
        if counters is None:
            found.pop((key,), None)
            if not row.get(yaml.get("delete_if", "")):
                held = {name: row[name] for name in (yaml["key"], *yaml["columns"])}
                found[(key,)] = {name: value for name, value in held.items() if value is not None}
            continue
        second = int(row[counters["time"]].timestamp())
        for window, bucket in counters["windows"].items():
            begin = second - second % seconds(bucket)
            if begin <= now - seconds(window) - seconds(bucket):
                continue
            counted = found.setdefault((key, str(seconds(window)), str(begin)), {})
            for what, more in {"count": 1, **{name: row[name] or 0 for name in counters.get("sums", ())}}.items():
                counted[what] = int(counted.get(what, 0)) + int(more)
    return found
