from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound import __version__
from lakebound.errors import BadEntryError, ForeignTableError, NewerEntryError, TopicRecreatedError
from lakebound.ledger.entry import (
    ENTRY_KEY,
    Entry,
    Offsets,
    TopicOffsets,
    add,
    carried,
    check_owner,
    check_topic_ids,
    common,
    count,
    decode,
    encode,
    high_water_marks,
    intervals_of,
    missing,
)
from lakebound.ledger.intervals import merge
from lakebound.tables.entries import MAX_ENTRY_BYTES, counting, read_entry
from lakebound.tables.table import CommittedEntry

partition_intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 10)), max_size=4).map(
    lambda pairs: merge([(start, start + length) for start, length in pairs])
)
topic_offsets = st.dictionaries(st.integers(0, 3), partition_intervals, max_size=3).map(
    lambda partitions: TopicOffsets(topic_id="id", partitions=partitions)
)
coverages = st.dictionaries(st.sampled_from(["orders", "returns"]), topic_offsets, max_size=2)


def members(offsets: Offsets) -> set[tuple[str, int, int]]:
    return {
        (topic, partition, offset)
        for topic, partition, intervals in intervals_of(offsets)
        for start, end in intervals
        for offset in range(start, end)
    }


def entry(**changes: object) -> Entry:
    return Entry.model_validate({"kind": "land", "pipeline": "orders", "epoch": 3, "commit": "c-1"} | changes)


@given(coverages, coverages)
def test_a_batch_is_exactly_what_coverage_lacks_and_then_holds(coverage: Offsets, wanted: Offsets) -> None:
    lacking = missing(wanted, coverage)
    assert members(lacking) == members(wanted) - members(coverage)
    assert not members(common(lacking, coverage))
    after = add(coverage, lacking)
    assert members(after) == members(coverage) | members(wanted)
    assert count(after) == count(coverage) + count(lacking)
    assert missing(wanted, after) == {}


@given(coverages, coverages, coverages)
def test_the_order_of_commits_does_not_change_coverage(first: Offsets, second: Offsets, third: Offsets) -> None:
    assert members(add(add(first, second), third)) == members(add(first, add(third, second)))


@given(coverages)
def test_an_entry_survives_its_encoding(coverage: Offsets) -> None:
    original = entry(coverage={topic: offsets.model_dump() for topic, offsets in coverage.items()}, rows=3)
    assert decode(encode(original), "commit 7") == original


def test_high_water_mark_is_the_end_of_the_last_interval() -> None:
    coverage = {"orders": TopicOffsets(topic_id="id", partitions={0: ((0, 5), (9, 12)), 1: ((7, 7),)})}
    assert high_water_marks(coverage) == {"orders": {0: 12, 1: 7}}


def test_offsets_of_another_incarnation_never_mix() -> None:
    old = {"orders": TopicOffsets(topic_id="old", partitions={0: ((0, 5),)})}
    new = {"orders": TopicOffsets(topic_id="new", partitions={0: ((5, 9),)})}
    with pytest.raises(TopicRecreatedError):
        add(old, new)
    with pytest.raises(TopicRecreatedError):
        check_topic_ids(old, {"orders": "new"})


def test_another_pipelines_entry_is_refused() -> None:
    with pytest.raises(ForeignTableError, match="'orders'"):
        check_owner(entry(), "returns", "delta:shop.orders")


@pytest.mark.parametrize("text", [None, "", "by hand", "[1]", "{}", '{"other": 1}', '"lakebound"', "{", "nul\x00l"])
def test_metadata_of_others_is_no_entry(text: str | None) -> None:
    assert read_entry(text, "commit 7") is None


def of_the_future(**fields: Any) -> str:
    body = json.loads(encode(entry(rows=3)))[ENTRY_KEY]
    return json.dumps({ENTRY_KEY: {**body, "writer": "9.1.0", **fields}})


def test_an_entry_names_its_writer_and_an_older_one_has_none() -> None:
    assert json.loads(encode(entry()))[ENTRY_KEY]["writer"] == __version__
    body = json.loads(encode(entry()))[ENTRY_KEY]
    del body["writer"]
    read = read_entry(json.dumps({ENTRY_KEY: body}), "commit 7")
    assert read is not None and read.writer is None
    assert carried(read).writer == __version__


@given(st.dictionaries(st.text(min_size=1).map("new_{}".format), st.none() | st.integers() | st.lists(st.text()), max_size=3))
def test_optional_fields_of_a_later_version_are_left_out(fields: dict[str, Any]) -> None:
    read = read_entry(of_the_future(**fields), "commit 7")
    assert read is not None
    assert read == entry(rows=3, commit=read.commit, writer="9.1.0")


@pytest.mark.parametrize("needs", [{"requires": ["holes"]}, {"version": 2, "coverage": "in another form"}])
def test_what_a_later_version_must_be_read_with_is_refused_by_name(needs: dict[str, Any]) -> None:
    with pytest.raises(NewerEntryError, match=r"commit 7 was written by a later version of Lakebound \(9\.1\.0\)") as caught:
        read_entry(of_the_future(**needs), "commit 7")
    assert caught.value.is_refusal
    assert ("holes" if "requires" in needs else "format 2") in str(caught.value)


HOSTILE = {
    "not an entry": {ENTRY_KEY: 1},
    "key of another type": {ENTRY_KEY: {"kind": "land", "pipeline": "p", "epoch": 1, "commit": "c", "requires": "rm"}},
    "unknown kind": {ENTRY_KEY: {"kind": "drop", "pipeline": "p", "epoch": 1, "commit": "c"}},
    "later version": {ENTRY_KEY: {"version": 2, "kind": "land", "pipeline": "p", "epoch": 1, "commit": "c"}},
    "negative epoch": {ENTRY_KEY: {"kind": "land", "pipeline": "p", "epoch": -1, "commit": "c"}},
    "epoch beyond bounds": {ENTRY_KEY: {"kind": "land", "pipeline": "p", "epoch": 2**40, "commit": "c"}},
    "unmerged": {
        ENTRY_KEY: {
            "kind": "land",
            "pipeline": "p",
            "epoch": 1,
            "commit": "c",
            "coverage": {"t": {"topic_id": "i", "partitions": {"0": [[5, 9], [0, 6]]}}},
        }
    },
    "offset beyond bounds": {
        ENTRY_KEY: {
            "kind": "land",
            "pipeline": "p",
            "epoch": 1,
            "commit": "c",
            "coverage": {"t": {"topic_id": "i", "partitions": {"0": [[0, 2**70]]}}},
        }
    },
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_forged_entry_is_refused_with_its_place(name: str) -> None:
    with pytest.raises(BadEntryError, match="commit 7"):
        read_entry(json.dumps(HOSTILE[name]), "commit 7")


def test_a_torn_a_deep_and_an_oversized_entry_are_refused() -> None:
    for text in (
        encode(entry())[:-3],
        '{"lakebound":' + "[" * 200_000,
        '{"lakebound": {"epoch": ' + "9" * 5_000 + "}}",
        '{"lakebound": "' + "x" * MAX_ENTRY_BYTES + '"}',
    ):
        with pytest.raises(BadEntryError):
            read_entry(text, "commit 7")


def committed(kind: str, version: int) -> CommittedEntry:
    return CommittedEntry(str(version), 0, entry(kind=kind, commit=f"c-{version}"))


def test_a_carry_that_a_batch_overtook_does_not_count() -> None:
    """Maintenance read entry 5, a batch landed as 6, maintenance committed as 7."""
    found = counting([committed("carry", 7), committed("land", 6), committed("land", 5)])
    assert found is not None and found.version == "6"


def test_a_carry_counts_where_nothing_else_is_left() -> None:
    found = counting([committed("carry", 7), committed("carry", 4)])
    assert found is not None and found.version == "7"
    assert counting([]) is None


def test_a_reset_ends_what_was_before_it() -> None:
    found = counting([committed("reset", 9), committed("land", 8)])
    assert found is not None and found.version == "9"
