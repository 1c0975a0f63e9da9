"""Which way a batch takes: by what batches took, within what the driver can hold, and never to and fro."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebound.spec.pipeline import DriverLaneSpec
from lakebound_spark.batch.lane_choice import Cost, Way, WayChooser

LARGE = 1_000_000


def play(chooser: WayChooser, costs: dict[Way, tuple[float, float]], sizes: list[int], noise: float, seed: int) -> list[Way]:
    """Land batches whose seconds scatter around each way's own line, and return the ways that were taken."""
    chance, taken = random.Random(seed), []
    for size in sizes:
        way = chooser.choose(size, may_be_direct=True)
        fixed, per_row = costs[way]
        seconds = (fixed + per_row * size) * chance.uniform(1 - noise, 1 + noise)
        chooser.learn(way, records=size, value_bytes=180 * size, rows=size, seconds=seconds)
        taken.append(way)
    return taken


def switches(ways: list[Way]) -> int:
    return sum(before != after for before, after in pairwise(ways))


def test_the_driver_reads_a_backlog_where_it_is_faster_than_the_executors() -> None:
    ways = play(WayChooser(DriverLaneSpec()), {"direct": (0.05, 5e-6), "cluster": (0.6, 12e-6)}, [LARGE] * 100, 0.1, 1)
    assert ways[0] == "direct", "its width need not be known: it is read in slices"
    assert ways.count("cluster") <= 2


def test_many_executors_are_found_to_be_faster_and_small_batches_stay_with_the_driver() -> None:
    chooser = WayChooser(DriverLaneSpec(), cores=16)
    costs: dict[Way, tuple[float, float]] = {"direct": (0.05, 8e-6), "cluster": (0.6, 1e-6)}
    ways = play(chooser, costs, [LARGE] * 100, 0.1, 1)
    assert ways[50:] == ["cluster"] * 50
    assert play(chooser, costs, [500] * 100, 0.1, 2) == ["direct"] * 100
    assert play(chooser, costs, [LARGE] * 10, 0.1, 3) == ["cluster"] * 10


@settings(max_examples=40, deadline=None)
@given(
    direct=st.floats(2e-6, 2e-5),
    cluster=st.floats(2e-6, 2e-5),
    noise=st.floats(0, 0.15),
    seed=st.integers(0, 1000),
)
def test_it_does_not_go_to_and_fro(direct: float, cluster: float, noise: float, seed: int) -> None:
    costs: dict[Way, tuple[float, float]] = {"direct": (0.05, direct), "cluster": (0.6, cluster)}
    ways = play(WayChooser(DriverLaneSpec(), cores=4), costs, [LARGE] * 400, noise, seed)
    # Another way is tried after 32, 64, 128, ... batches, which is two switches; what is learned then may switch once more.
    assert switches(ways) <= 3 * 3 + 2
    seconds = {way: fixed + per_row * LARGE for way, (fixed, per_row) in costs.items()}
    faster, slower = sorted(seconds, key=lambda way: seconds[way])
    if seconds[slower] > 1.6 * seconds[faster]:
        assert ways[-100:].count(faster) >= 98


def test_the_threshold_is_where_the_lines_cross() -> None:
    chooser = WayChooser(DriverLaneSpec())
    costs: dict[Way, tuple[float, float]] = {"direct": (0.1, 10e-6), "cluster": (1.0, 1e-6)}
    play(chooser, costs, [1_000, 10_000, 500_000, LARGE] * 50, 0.05, 4)
    assert [chooser.choose(size, may_be_direct=True) for size in (1_000, 50_000, 200_000, LARGE)] == [
        "direct",
        "direct",
        "cluster",
        "cluster",
    ]


@pytest.mark.parametrize("limits", [{"max_rows": 0}, {"max_bytes": 0}])
def test_nothing_goes_through_the_driver_where_that_is_turned_off(limits: dict[str, int]) -> None:
    chooser = WayChooser(DriverLaneSpec(**limits))
    chooser.learn("cluster", records=10, value_bytes=1_000, rows=10, seconds=1.0)
    assert chooser.choose(1, may_be_direct=True) == chooser.choose(1) == "cluster"


def test_a_cost_is_learned_from_batches_of_one_size_and_stays_a_line() -> None:
    cost = Cost(0.05, 5e-6)
    for _ in range(100):
        cost.learn(300, 0.1)
    assert cost.seconds(300) == pytest.approx(0.1, rel=0.2)
    assert cost.seconds(LARGE) == pytest.approx(5.0, rel=0.5)
    assert cost.seconds(0) <= cost.seconds(300) <= cost.seconds(LARGE)


def test_what_was_long_ago_is_forgotten() -> None:
    cost = Cost(0.05, 5e-6)
    for seconds in [20.0] * 50 + [4.0] * 50:
        cost.learn(LARGE, seconds)
    assert cost.seconds(LARGE) == pytest.approx(4.0, rel=0.1)


def test_a_batch_without_records_teaches_nothing() -> None:
    chooser = WayChooser(DriverLaneSpec())
    chooser.learn("direct", records=0, value_bytes=0, rows=0, seconds=9.0)
    assert chooser.bytes_per_record is None
    assert chooser.choose(LARGE, may_be_direct=True) == "direct"


def test_what_spark_costs_while_it_warms_up_is_held_against_no_way() -> None:
    chooser, taken = WayChooser(DriverLaneSpec(), has_transform=True), []
    for number in range(300):
        way = chooser.choose(300, may_be_direct=True)
        warm = {"direct": 0.1, "collected": 0.2, "cluster": 0.7}[way]
        chooser.learn(way, records=300, value_bytes=54_000, rows=300, seconds=warm + (4.0 if number < 5 else 0.0))
        taken.append(way)
    assert taken.count("direct") >= 295
    assert taken[-20:] == ["direct"] * 20


def test_a_transform_that_keeps_the_cores_busy_is_left_to_sparks_tasks() -> None:
    costs: dict[Way, tuple[float, float]] = {"direct": (0.1, 2e-4), "collected": (0.2, 3e-5), "cluster": (0.8, 3e-5)}
    chosen = {}
    for size in (100, 5_000, LARGE):
        taken = play(WayChooser(DriverLaneSpec(), cores=8, has_transform=True), costs, [size] * 200, 0.1, size)
        chosen[size] = {*taken[-50:]}
    assert chosen == {100: {"direct"}, 5_000: {"collected"}, LARGE: {"cluster"}}, "of a million the driver can hold none"


def test_each_of_the_other_ways_gets_its_tries() -> None:
    chooser = WayChooser(DriverLaneSpec(), has_transform=True)
    costs: dict[Way, tuple[float, float]] = {"direct": (2.0, 0.0), "collected": (2.1, 0.0), "cluster": (2.2, 0.0)}
    assert {*play(chooser, costs, [300] * 400, 0.0, 8)} == {*costs}


def test_a_slow_machine_is_no_reason_for_a_way_whose_first_batch_takes_seconds() -> None:
    """As in the demo, on two cores beside Airflow: 0.25 s instead of 0.1, and 6 s for the first batch that Spark read."""
    chooser = WayChooser(DriverLaneSpec(), has_transform=True)
    costs: dict[Way, tuple[float, float]] = {"direct": (0.24, 10e-6), "collected": (6.0, 0.0), "cluster": (9.0, 0.0)}
    assert {*play(chooser, costs, [119, 425, 30, 20, 9, 630, 1594, 1396, 794, 997, 675, *[429] * 2000], 0.1, 9)} == {"direct"}


@pytest.mark.parametrize("has_transform", [False, True])
def test_cold_executors_are_no_way_out_for_a_busy_driver(has_transform: bool) -> None:
    """As in containers on two busy cores: 3,000 records took the driver 2.9 s, and the executors' first batch 57 s."""
    chooser = WayChooser(DriverLaneSpec(), has_transform=has_transform, on_cluster=True)
    costs: dict[Way, tuple[float, float]] = {"direct": (0.2, 9e-4), "collected": (57.0, 0.0), "cluster": (67.0, 0.0)}
    assert {*play(chooser, costs, [195, 817, 76, 2117, 4228, 4480, *[3145] * 60], 0.1, 9)} == {"direct"}


@pytest.mark.parametrize("has_transform", [False, True])
def test_a_backlog_that_keeps_the_driver_busy_for_long_is_left_to_executors(has_transform: bool) -> None:
    """Their first batch is slow, which says nothing of the next ones."""
    chooser = WayChooser(DriverLaneSpec(), has_transform=has_transform, on_cluster=True)
    taken: list[Way] = []
    for _ in range(40):
        way = chooser.choose(LARGE, may_be_direct=True)
        first_on_executors = 50.0 if way != "direct" and {*taken} <= {"direct"} else 0.0
        seconds = {"direct": 60.0, "collected": 20.0, "cluster": 12.0}[way] + first_on_executors
        chooser.learn(way, records=LARGE, value_bytes=180 * LARGE, rows=LARGE, seconds=seconds)
        taken.append(way)
    assert taken[0] == "direct"
    assert set(taken[-20:]) == {"cluster"}
