from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.errors import OffsetBeyondEndError, TopicRecreatedError
from lakebound.ledger.entry import Offsets, TopicOffsets, add, common, count, high_water_marks, missing
from lakebound.ledger.intervals import gaps, merge
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.replay.bounds import FIRST, BadBoundError, ReplayBound, between, parse_bound, resolve
from lakebound.operations.replay.chunks import chunks
from lakebound.operations.replay.plan import (
    GoneFromKafkaError,
    ReplayPlan,
    announced,
    below_marks,
    lowest_marks,
    make_plan,
    without,
)

TOPIC, ID = "orders", "id-1"
KAFKA = {TOPIC: TopicFacts(ID, earliest={0: 10, 1: 0}, latest={0: 1000, 1: 500})}

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)).map(lambda pair: (pair[0], sum(pair))), max_size=6)
ranges = st.dictionaries(st.integers(0, 3), intervals.map(merge), max_size=3).map(
    lambda partitions: {TOPIC: TopicOffsets(topic_id=ID, partitions=partitions)}
)


def offsets(*pieces: tuple[int, int], partition: int = 0) -> Offsets:
    return {TOPIC: TopicOffsets(topic_id=ID, partitions={partition: merge(pieces)})}


def members(found: Offsets) -> set[tuple[int, int]]:
    partitions = found[TOPIC].partitions if TOPIC in found else {}
    return {(p, offset) for p, pieces in partitions.items() for start, end in pieces for offset in range(start, end)}


def bound(text: str) -> ReplayBound:
    return parse_bound("--from", text, now_ms=2_000_000_000_000)


def planned(asked: Offsets, *coverages: Offsets, **options: object) -> ReplayPlan:
    tables = {f"delta:t{number}": coverage for number, coverage in enumerate(coverages)}
    return make_plan("orders", asked, tables, KAFKA, **options)  # type: ignore[arg-type]


class TestBounds:
    def test_words_times_and_offsets(self) -> None:
        at_time = {TOPIC: {0: 77, 1: 88}}
        for text, expected in {
            "earliest": {0: 10, 1: 0},
            "latest": {0: 1000, 1: 500},
            "2026-11-20T14:05": {0: 77, 1: 88},
            '{"orders": {"1": 3}}': {1: 3},
        }.items():
            assert resolve(bound(text), KAFKA, at_time) == {TOPIC: expected}
        assert resolve(FIRST, KAFKA, None) == {TOPIC: {0: 0, 1: 0}}

    def test_a_time_without_a_zone_is_utc(self) -> None:
        assert bound("1970-01-01T00:00:01").timestamp_ms == 1000
        assert bound("1970-01-01T01:00:01+01:00").timestamp_ms == 1000

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "yesterday",
            "2999-01-01",
            "100",
            "{",
            '{"orders": 5}',
            '{"orders": {"x": 5}}',
            '{"orders": {"0": -1}}',
            '{"orders": {"0": true}}',
        ],
    )
    def test_what_is_no_place_in_kafka_is_refused(self, text: str) -> None:
        with pytest.raises(BadBoundError, match="--from: "):
            bound(text)

    @pytest.mark.parametrize(
        ("text", "name"), [('{"returns": {"0": 5}}', "'returns'"), ('{"orders": {"7": 5}}', "partition 7")]
    )
    def test_what_the_pipeline_does_not_have_is_named(self, text: str, name: str) -> None:
        with pytest.raises(BadBoundError, match=name):
            resolve(bound(text), KAFKA, None)

    def test_only_partitions_that_both_ends_name_and_that_are_not_empty(self) -> None:
        found = between({TOPIC: {0: 20, 1: 40}}, {TOPIC: {0: 30}}, KAFKA)
        assert found == offsets((20, 30))
        assert between({TOPIC: {0: 30}}, {TOPIC: {0: 30, 1: 9}}, KAFKA) == {}


class TestPlan:
    def test_each_table_gets_what_it_lacks_below_the_lowest_mark(self) -> None:
        plan = planned(offsets((10, 400)), offsets((10, 50), (60, 300)), offsets((10, 40), (70, 200)))
        first, second = plan.tables
        assert members(first.lands) == members(offsets((50, 60))) and first.covered == 180
        assert members(second.lands) == members(offsets((40, 70))) and second.covered == 160
        assert members(plan.wanted) == members(offsets((40, 70)))
        assert plan.left_to_stream == offsets((200, 400))
        assert plan.kafka == {TOPIC: {0: (10, 1000)}}

    def test_below_the_mark_of_a_stream_that_started_at_the_end(self) -> None:
        plan = planned(offsets((10, 900)), offsets((300, 300)))
        assert plan.wanted == offsets((10, 300)) and plan.left_to_stream == offsets((300, 900))

    def test_a_partition_that_a_table_has_never_seen_is_the_streams(self) -> None:
        plan = planned(offsets((0, 100), partition=1), offsets((10, 90)), offsets((10, 90)))
        assert not count(plan.wanted) and count(plan.left_to_stream) == 100

    def test_what_kafka_no_longer_has_is_named_and_refused(self) -> None:
        plan = planned(offsets((0, 100)), offsets((50, 300)))
        assert plan.gone == offsets((0, 10))
        with pytest.raises(GoneFromKafkaError, match=r"10 of the offsets.*orders/0 \[0, 10\)"):
            plan.check()
        planned(offsets((10, 100)), offsets((50, 300))).check()
        planned(offsets((0, 100)), offsets((0, 30), (50, 300))).check()

    def test_another_incarnation_and_offsets_beyond_the_end_are_refused(self) -> None:
        other = {TOPIC: TopicOffsets(topic_id="id-0", partitions={0: ((0, 50),)})}
        with pytest.raises(TopicRecreatedError):
            planned(offsets((0, 10)), other)
        with pytest.raises(OffsetBeyondEndError):
            planned(offsets((900, 1100)), offsets((10, 900), (1200, 1300)))

    def test_what_is_taken_back_is_landed_though_the_coverage_holds_it(self) -> None:
        taken = {"delta:t0": offsets((20, 30), (90, 100))}
        plan = planned(offsets((20, 30), (90, 100)), offsets((10, 100)), offsets((10, 100)), takes_back=taken)
        assert plan.takes_back == taken
        assert [count(share.lands) for share in plan.tables] == [20, 0]

    def test_nothing_is_taken_back_outside_of_what_is_asked_for_and_held(self) -> None:
        taken = {"delta:t0": offsets((5, 500))}
        plan = planned(offsets((20, 30)), offsets((25, 100)), takes_back=taken)
        assert plan.takes_back == {"delta:t0": offsets((25, 30))}
        assert plan.wanted == offsets((20, 30))


@given(ranges, ranges, ranges)
def test_a_plan_lands_exactly_what_each_table_lacks(asked: Offsets, first: Offsets, second: Offsets) -> None:
    facts = {TOPIC: TopicFacts(ID, dict.fromkeys(range(4), 0), dict.fromkeys(range(4), 100))}
    plan = make_plan("orders", asked, {"a": first, "b": second}, facts)
    marks = lowest_marks([first, second]).get(TOPIC, {})
    below = {(p, offset) for p, offset in members(asked) if offset < marks.get(p, 0)}
    for share, coverage in zip(plan.tables, (first, second), strict=True):
        assert members(share.lands) == below - members(coverage)
        # What is read for the other table, too, is trimmed by the table's own coverage to the very same.
        assert members(missing(plan.wanted, coverage)) == members(share.lands)
    assert members(plan.left_to_stream) == members(asked) - below
    assert members(below_marks(asked, {TOPIC: marks})) == below


@given(ranges, ranges)
def test_taking_back_moves_no_mark_and_leaves_a_gap_until_it_has_landed_again(coverage: Offsets, taken: Offsets) -> None:
    after = without(coverage, taken)
    assert members(after) == members(coverage) - members(taken)
    assert high_water_marks(after) == high_water_marks(coverage)
    holes = {
        (p, offset)
        for p, pieces in after[TOPIC].partitions.items()
        for start, end in gaps(pieces)
        for offset in range(start, end)
    }
    assert holes >= members(common(coverage, taken))
    assert members(add(after, common(coverage, taken))) == members(coverage)


def test_what_is_announced_is_a_gap_until_it_has_landed() -> None:
    wanted = add(offsets((10, 300)), offsets((0, 50), partition=1))
    coverage = add(add(offsets((300, 300)), offsets((0, 90), partition=1)), offsets((5, 7), partition=2))
    marks = announced(wanted, coverage)
    assert marks == offsets((10, 10))
    after = add(coverage, marks)
    assert gaps(after[TOPIC].partitions[0]) == ((10, 300),) and high_water_marks(after) == high_water_marks(coverage)
    assert announced(wanted, after) == {} and announced(wanted, {}) == {}
    assert add(after, offsets((10, 300)))[TOPIC].partitions[0] == ((10, 300),)


@given(ranges, st.integers(1, 40))
def test_chunks_are_the_range_in_order_and_none_is_read_wider_than_allowed(wanted: Offsets, most: int) -> None:
    found = list(chunks(wanted, most))
    assert sorted(place for chunk in found for place in members(chunk)) == sorted(members(wanted))
    for chunk in found:
        pieces = [interval for interval in chunk[TOPIC].partitions.values() if interval]
        assert pieces and sum(interval[-1][1] - interval[0][0] for interval in pieces) <= most
    for partition in range(4):
        starts = [min(own)[1] for chunk in found if (own := {m for m in members(chunk) if m[0] == partition})]
        assert starts == sorted(starts)
