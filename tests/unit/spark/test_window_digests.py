"""Rows of a table beside those that are computed: as often, whatever their order."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebound.ledger.closed_windows import ClosedWindows
from lakebound.spec.table import TableSpec
from lakebound.tables.places import local_places
from lakebound_spark.check.closed_windows import WindowRows, compared, digests

WINDOW = pa.struct([("start", pa.timestamp("us", "UTC")), ("end", pa.timestamp("us", "UTC"))])
SCHEMA = pa.schema([("window", WINDOW), ("sensor", pa.string()), ("sum", pa.decimal128(10, 2))])
WHICH = ClosedWindows({0: 0}, {0: 9}, None, 60_000)


def rows(*found: tuple[int, str | None, str]) -> pa.Table:
    body = [
        {
            "window": {"start": datetime.fromtimestamp(end - 5, UTC), "end": datetime.fromtimestamp(end, UTC)},
            "sensor": sensor,
            "sum": Decimal(value),
        }
        for end, sensor, value in found
    ]
    return pa.Table.from_pylist(body, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WindowRows:
    one = WindowRows(
        TableSpec(format="delta", name="iot.w"), local_places(tmp_path, tmp_path), frozenset(SCHEMA.names), "window"
    )
    monkeypatch.setitem(one.__dict__, "schema", SCHEMA)
    return one


def judge(table: WindowRows, monkeypatch: pytest.MonkeyPatch, made: pa.Table, landed: pa.Table, **changes: Any) -> Any:
    monkeypatch.setattr(WindowRows, "read", lambda self, after_ms: iter([landed]))
    which = ClosedWindows(WHICH.begins, WHICH.ends, changes.get("after_ms"), WHICH.until_ms)
    return compared(table, which, made, digests([landed]))


def test_the_same_rows_in_another_order_are_the_same(table: WindowRows, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(table, monkeypatch, rows((5, "a", "1.50"), (10, None, "2")), rows((10, None, "2.00"), (5, "a", "1.5")))
    assert (found.rows, found.computed, found.missing, found.surplus, found.examples) == (2, 2, 0, 0, ())


def test_a_row_that_is_there_twice_is_one_too_many(table: WindowRows, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(table, monkeypatch, rows((5, "a", "1")), rows((5, "a", "1"), (5, "a", "1")))
    assert (found.missing, found.surplus) == (0, 1) and found.examples[0].startswith("only in the table: window=")


def test_a_row_that_was_changed_is_missing_and_another_one_is_found(table: WindowRows, monkeypatch: pytest.MonkeyPatch) -> None:
    found = judge(table, monkeypatch, rows((5, "a", "1"), (10, "b", "2")), rows((5, "a", "1"), (10, "b", "3")))
    assert (found.missing, found.surplus) == (1, 1)
    missing, surplus = found.examples
    assert missing.startswith("missing ") and "sensor=b, sum=2.00" in missing
    assert surplus.startswith("only in the table: ") and "sensor=b, sum=3.00" in surplus


def test_without_a_window_rows_of_before_are_not_taken_for_surplus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = WindowRows(TableSpec(format="delta", name="iot.w"), local_places(tmp_path, tmp_path), frozenset(SCHEMA.names), None)
    monkeypatch.setitem(one.__dict__, "schema", SCHEMA)
    found = judge(one, monkeypatch, rows((10, "b", "2")), rows((5, "a", "1"), (10, "b", "2")), after_ms=5_000)
    assert (found.missing, found.surplus, found.one_way) == (0, 0, True)
    found = judge(one, monkeypatch, rows((10, "b", "2")), rows((5, "a", "1")), after_ms=5_000)
    assert found.missing == 1
