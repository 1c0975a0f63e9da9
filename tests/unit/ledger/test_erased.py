"""Sets of erased rows: their arithmetic, their file, and how entries carry them on."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.errors import NewerEntryError
from lakebound.ledger import entry as ledger
from lakebound.ledger.entry import ENTRY_KEY, Entry, carried, decode, encode
from lakebound.ledger.erased import ErasedRows, decode_erased
from lakebound.tables.erased import are_among, as_kafka_rows, erased_among, erased_rows, lacking

POSITIONS = st.sets(st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 2)), max_size=80)


def of(positions: set[tuple[int, int, int]]) -> ErasedRows:
    found: dict[tuple[str, str, int, int], list[tuple[int, int]]] = {}
    for partition, offset, ordinal in positions:
        found.setdefault(("orders", "id-1", partition, ordinal), []).append((offset, offset + 1))
    return ErasedRows.of(found)


def positions_of(rows: ErasedRows) -> set[tuple[int, int, int]]:
    return {(row["partition"], row["offset"], row["ordinal"]) for row in as_kafka_rows(rows).to_pylist()}


@given(POSITIONS, POSITIONS)
def test_a_set_is_what_was_put_into_it(some: set[tuple[int, int, int]], others: set[tuple[int, int, int]]) -> None:
    rows, more = of(some), of(others)
    assert positions_of(rows) == some and rows.rows == len(some) and bool(rows) == bool(some)
    assert decode_erased(rows.encode()) == rows and erased_rows(as_kafka_rows(rows)) == rows
    both = rows.plus(more)
    assert positions_of(both) == some | others and both.plus(rows) == both and both.file == more.plus(rows).file
    kafka = as_kafka_rows(both)
    is_more = [(row["partition"], row["offset"], row["ordinal"]) in others for row in kafka.to_pylist()]
    assert are_among(kafka, more).tolist() == is_more


@given(POSITIONS, st.integers(0, 60))
def test_what_a_coverage_lacks_is_left_out(some: set[tuple[int, int, int]], end: int) -> None:
    rows = of(some)
    coverage = {"orders": ledger.TopicOffsets(topic_id="id-1", partitions={0: ((0, end),)})}
    lacked = {(p, offset) for p, offset, _ in some if p or offset >= end}
    found = lacking(rows, coverage)
    assert {(p, o) for (_, _, p), intervals in found.items() for pair in intervals for o in range(*pair)} == lacked
    wanted = {"orders": ledger.TopicOffsets(topic_id="id-1", partitions={0: ((0, 30),), 1: ((10, 20), (40, 50))})}
    inside = {(0, o) for o in range(30)} | {(1, o) for o in (*range(10, 20), *range(40, 50))}
    held = erased_among(wanted, found)
    assert {
        (p, o) for _, p, intervals in ledger.intervals_of(held) for pair in intervals for o in range(*pair)
    } == lacked & inside
    other = {"orders": ledger.TopicOffsets(topic_id="id-2", partitions={0: ((0, 90),)})}
    assert erased_among(other, found) == {}, "of another incarnation of the topic"


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"erased": [{"topic": "t"}]}', b'{"erased": 1}'])
def test_what_is_no_set_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_erased(content)


def test_many_scattered_rows_are_packed() -> None:
    rows = of({(0, offset * 7, 0) for offset in range(10_000)})
    assert len(rows.encode()) < 1_000 < len(json.dumps([[o * 7, o * 7 + 1] for o in range(10_000)]))


def test_an_entry_carries_the_set_on_and_an_older_version_refuses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    named = of({(0, 4, 0)}).file
    entry = Entry(kind="erase", pipeline="orders", epoch=1, commit="c", erased=named, erases=1, decision="abc")
    text = encode(entry)
    assert decode(text, "here") == entry.model_copy(update={"requires": ("erased",)})
    assert next(iter(json.loads(text)[ENTRY_KEY])) == "kind", "maintenance recognises an entry by its beginning"
    again = carried(entry)
    assert again.erased == named and json.loads(encode(again))[ENTRY_KEY]["requires"] == ["erased"]
    monkeypatch.setattr(ledger, "KNOWN_REQUIREMENTS", frozenset())
    with pytest.raises(NewerEntryError):
        decode(text, "here")


def test_an_entry_without_erasures_requires_nothing() -> None:
    text = encode(Entry(kind="land", pipeline="orders", epoch=1, commit="c"))
    assert "requires" not in text and "erase" not in text
