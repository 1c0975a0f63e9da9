"""Rows that are lost, there twice, or other than they should be are found, whoever wrote them."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from generator import PAYLOADS, values
from work import COLUMNS, Checked, checked, content_of, kept_share, rows_in, rows_of

CLEAN, DIRTY = values(180, dirty=False), values(180, dirty=True)


def write(path: Path, rows: list[tuple[object, ...]]) -> Path:
    table = pa.table(dict(zip(COLUMNS["enrich"], zip(*rows, strict=True), strict=True)))
    pq.write_table(table.append_column("offset", pa.array(range(len(rows)))), path)
    return path


def test_a_record_gives_the_row_of_its_work() -> None:
    value = [CLEAN[101]]
    pad = next(iter(rows_of("plain", value, 1)))[-1]
    hashed = hashlib.sha256(b"device-4").hexdigest()
    assert rows_of("plain", value, 2) == {("000000000101", "device-4", 37.37, "reading", pad): 2}
    assert rows_of("encode", value, 2) == {("000000000101", hashed, 37.37 * 1.8 + 32, "READING", "000101", pad): 2}
    assert rows_of("enrich", value, 2) == {("000000000101", "device-4", 37.37, "reading", "site-4", "model-4", pad): 2}
    unknown = rows_of("enrich", [CLEAN[0]], 1)
    assert [row[:6] for row in unknown] == [("000000000000", "device-0", 0.0, "reading", None, None)]


def test_records_are_counted_by_their_turn() -> None:
    rows = rows_of("dirty", DIRTY, 2 * PAYLOADS + 51)
    assert (rows.total(), len(rows)) == (2 * 990 + 50, 990)
    assert kept_share("encode", CLEAN) == 0.9 and kept_share("dirty", DIRTY) == 0.99 and kept_share("plain", CLEAN) == 1.0


def test_rows_of_files_are_compared_whatever_their_order_and_offsets(tmp_path: Path) -> None:
    expected = rows_of("enrich", CLEAN[:4], 10)
    rows = [row for row, times in expected.items() for _ in range(times)]
    files = [write(tmp_path / "1.parquet", rows[:3]), write(tmp_path / "2.parquet", rows[:2:-1])]
    found = rows_in(files, "enrich")
    assert found == expected
    assert checked(found, expected) == Checked(10, 0, 0, content_of(expected))


@pytest.mark.parametrize(
    ("changes", "missing", "surplus"), [({"lost": -1}, 1, 0), ({"lost": 1}, 0, 1), ({"lost": -1, "other": 1}, 1, 1)]
)
def test_a_row_too_few_or_too_many_or_another_one_is_found(changes: dict[str, int], missing: int, surplus: int) -> None:
    expected = Counter({("lost",): 3, ("kept",): 2})
    found = expected + Counter({})
    for name, number in changes.items():
        found[(name,)] += number
    result = checked(found, expected)
    assert (result.missing, result.surplus) == (missing, surplus)
    assert (result.content == content_of(expected)) is ("other" not in changes)
