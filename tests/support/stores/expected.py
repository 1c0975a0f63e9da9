"""What a store must hold of made-up records, and what is in it. It imports nothing of Lakebound.

Record n is a payment of the card n modulo 7, one second after the one before.
"""

from __future__ import annotations

from collections import Counter
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
