from __future__ import annotations

import pytest

from lakebound.errors import OffsetBeyondEndError, RetentionPassedError, TopicRecreatedError
from lakebound.ledger.entry import Offsets, TopicOffsets, add
from lakebound.ledger.intervals import Interval
from lakebound.ledger.start import bound_range, bound_reached, covered_from, marks_for_unseen, plan_start
from lakebound.ledger.topics import TopicFacts


def facts(earliest: dict[int, int], latest: dict[int, int], topic_id: str = "id-1") -> dict[str, TopicFacts]:
    return {"orders": TopicFacts(topic_id, earliest, latest)}


def landed(partitions: dict[int, tuple[Interval, ...]], topic_id: str = "id-1") -> Offsets:
    return {"orders": TopicOffsets(topic_id=topic_id, partitions=partitions)}


def test_a_table_that_never_saw_a_partition_is_marked_at_its_earliest_offset() -> None:
    marks = marks_for_unseen({}, facts({0: 5, 1: 0}, {0: 9, 1: 0}), "earliest")
    assert marks == landed({0: ((5, 5),), 1: ((0, 0),)})


def test_latest_counts_for_a_new_topic_only() -> None:
    known = facts({0: 5, 1: 0}, {0: 9, 1: 7})
    assert marks_for_unseen({}, known, "latest") == landed({0: ((9, 9),), 1: ((7, 7),)})
    assert marks_for_unseen(landed({0: ((9, 12),)}), known, "latest") == landed({1: ((0, 0),)})


def test_the_stream_starts_at_the_lowest_high_water_mark_of_the_tables() -> None:
    ahead, behind = landed({0: ((0, 120),)}), landed({0: ((0, 100),)})
    assert plan_start([ahead, behind], facts({0: 0}, {0: 500})) == {"orders": {0: 100}}


def test_what_a_target_has_of_what_is_read_again() -> None:
    coverage = {**landed({0: ((0, 120), (150, 160)), 1: ((0, 5),), 2: ((7, 7),), 3: ((0, 9),)}), **foreign()}
    assert covered_from(coverage, {"orders": {0: 100, 1: 5, 2: 0}}) == landed({0: ((100, 120), (150, 160))})
    assert covered_from(coverage, {"orders": {0: 160, 1: 9}}) == {}


def foreign() -> Offsets:
    return {"returns": TopicOffsets(topic_id="id-2", partitions={0: ((0, 5),)})}


def test_a_gap_below_the_high_water_mark_is_the_proofs_business() -> None:
    assert plan_start([landed({0: ((0, 10), (20, 30))})], facts({0: 0}, {0: 500})) == {"orders": {0: 30}}


def test_a_table_that_joins_later_makes_the_stream_start_at_its_mark() -> None:
    old = landed({0: ((0, 120),)})
    new = marks_for_unseen({}, facts({0: 40}, {0: 500}), "earliest")
    assert plan_start([old, new], facts({0: 40}, {0: 500})) == {"orders": {0: 40}}


@pytest.mark.parametrize("mark", [landed({0: ((0, 100),)}), landed({0: ((100, 100),)})])
def test_retention_that_passed_the_coverage_or_a_mark_is_refused(mark: Offsets) -> None:
    with pytest.raises(
        RetentionPassedError, match="the next offset to land is 100, but Kafka's earliest offset is 130: 30 offsets are lost"
    ):
        plan_start([mark], facts({0: 130}, {0: 500}))


def test_a_recreated_topic_is_refused() -> None:
    with pytest.raises(TopicRecreatedError, match="id-1, the broker has topic id id-2"):
        plan_start([landed({0: ((0, 100),)})], facts({0: 0}, {0: 500}, "id-2"))


def test_a_ledger_beyond_the_end_of_the_topic_is_refused() -> None:
    with pytest.raises(OffsetBeyondEndError, match="up to 600, but Kafka ends at 500"):
        plan_start([landed({0: ((0, 600),)})], facts({0: 0}, {0: 500}))


def test_a_mark_does_not_hide_what_lands_after_it() -> None:
    assert add(landed({0: ((5, 5),)}), landed({0: ((5, 9),)})) == landed({0: ((5, 9),)})


def test_a_bound_cuts_a_batch() -> None:
    wanted = landed({0: ((0, 100),), 1: ((0, 100),)})
    assert bound_range(wanted, {"orders": {0: 40, 1: 0}}) == landed({0: ((0, 40),)})
    assert bound_range(wanted, None) == wanted


def test_a_bound_is_reached_when_every_partition_is_there() -> None:
    assert bound_reached({"orders": {0: 40, 1: 7}}, {"orders": {0: 40, 1: 7}})
    assert not bound_reached({"orders": {0: 40}}, {"orders": {0: 40, 1: 7}})
