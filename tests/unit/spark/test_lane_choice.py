"""Which lane a batch takes: by what batches took, within what the driver can hold, and never to and fro."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.landing.rollup_recorder import Lane
from lakebound.spec.limits import DriverLaneSpec
from lakebound_spark.batch.lane_choice import Cost, LaneChooser

LARGE = 1_000_000


def play(chooser: LaneChooser, costs: dict[Lane, tuple[float, float]], sizes: list[int], noise: float, seed: int) -> list[Lane]:
    """Land batches whose seconds scatter around each lane's own line, and return the lanes that were taken."""
    chance, taken = random.Random(seed), []
    for size in sizes:
        lane = chooser.choose(size, may_be_direct=True)
        fixed, per_row = costs[lane]
        seconds = (fixed + per_row * size) * chance.uniform(1 - noise, 1 + noise)
        chooser.learn(lane, records=size, value_bytes=180 * size, rows=size, seconds=seconds)
        taken.append(lane)
    return taken


def switches(lanes: list[Lane]) -> int:
    return sum(before != after for before, after in pairwise(lanes))


def test_the_driver_reads_a_backlog_where_it_is_faster_than_the_executors() -> None:
    lanes = play(LaneChooser(DriverLaneSpec()), {"direct": (0.05, 5e-6), "cluster": (0.6, 12e-6)}, [LARGE] * 100, 0.1, 1)
    assert lanes[0] == "direct", "its width need not be known: it is read in slices"
    assert lanes.count("cluster") <= 2


@pytest.mark.parametrize("on_cluster", [False, True])
def test_many_executors_are_found_to_be_faster_and_small_batches_stay_with_the_driver(on_cluster: bool) -> None:
    chooser = LaneChooser(DriverLaneSpec(), cores=16, on_cluster=on_cluster)
    costs: dict[Lane, tuple[float, float]] = {"direct": (0.05, 8e-6), "cluster": (0.6, 1e-6)}
    lanes = play(chooser, costs, [LARGE] * 100, 0.1, 1)
    assert lanes[50:] == ["cluster"] * 50
    assert play(chooser, costs, [500] * 100, 0.1, 2) == ["direct"] * 100
    assert play(chooser, costs, [LARGE] * 10, 0.1, 3) == ["cluster"] * 10


@settings(max_examples=examples(100))
@given(
    direct=st.floats(2e-6, 2e-5),
    cluster=st.floats(2e-6, 2e-5),
    noise=st.floats(0, 0.15),
    seed=st.integers(0, 1000),
)
def test_it_does_not_go_to_and_fro(direct: float, cluster: float, noise: float, seed: int) -> None:
    costs: dict[Lane, tuple[float, float]] = {"direct": (0.05, direct), "cluster": (0.6, cluster)}
    lanes = play(LaneChooser(DriverLaneSpec(), cores=4), costs, [LARGE] * 400, noise, seed)
    # Another lane is tried after 32, 64, 128, ... batches, which is two switches; what is learned then may switch once more.
    assert switches(lanes) <= 3 * 3 + 2
    seconds = {lane: fixed + per_row * LARGE for lane, (fixed, per_row) in costs.items()}
    faster, slower = sorted(seconds, key=lambda lane: seconds[lane])
    if seconds[slower] > 1.6 * seconds[faster]:
        assert lanes[-100:].count(faster) >= 98


def test_the_threshold_is_where_the_lines_cross() -> None:
    chooser = LaneChooser(DriverLaneSpec())
    costs: dict[Lane, tuple[float, float]] = {"direct": (0.1, 10e-6), "cluster": (1.0, 1e-6)}
    play(chooser, costs, [1_000, 10_000, 500_000, LARGE] * 50, 0.05, 4)
    assert [chooser.choose(size, may_be_direct=True) for size in (1_000, 50_000, 200_000, LARGE)] == [
        "direct",
        "direct",
        "cluster",
        "cluster",
    ]


@pytest.mark.parametrize("limits", [{"max_rows": 0}, {"max_bytes": 0}])
def test_nothing_goes_through_the_driver_where_that_is_turned_off(limits: dict[str, int]) -> None:
    chooser = LaneChooser(DriverLaneSpec(**limits))
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
    chooser = LaneChooser(DriverLaneSpec())
    chooser.learn("direct", records=0, value_bytes=0, rows=0, seconds=9.0)
    assert chooser.bytes_per_record is None
    assert chooser.choose(LARGE, may_be_direct=True) == "direct"


def test_what_spark_costs_while_it_warms_up_is_held_against_no_way() -> None:
    chooser, taken = LaneChooser(DriverLaneSpec(), has_transform=True), []
    for number in range(300):
        lane = chooser.choose(300, may_be_direct=True)
        warm = {"direct": 0.1, "driver": 0.2, "cluster": 0.7}[lane]
        chooser.learn(lane, records=300, value_bytes=54_000, rows=300, seconds=warm + (4.0 if number < 5 else 0.0))
        taken.append(lane)
    assert taken.count("direct") >= 295
    assert taken[-20:] == ["direct"] * 20


def test_a_transform_that_keeps_the_cores_busy_is_left_to_sparks_tasks() -> None:
    costs: dict[Lane, tuple[float, float]] = {"direct": (0.1, 2e-4), "driver": (0.2, 3e-5), "cluster": (0.8, 3e-5)}
    chosen = {}
    for size in (100, 5_000, LARGE):
        taken = play(LaneChooser(DriverLaneSpec(), cores=8, has_transform=True), costs, [size] * 200, 0.1, size)
        chosen[size] = {*taken[-50:]}
    assert chosen == {100: {"direct"}, 5_000: {"driver"}, LARGE: {"cluster"}}, "of a million the driver can hold none"


def test_each_of_the_other_ways_gets_its_tries() -> None:
    chooser = LaneChooser(DriverLaneSpec(), has_transform=True)
    costs: dict[Lane, tuple[float, float]] = {"direct": (2.0, 0.0), "driver": (2.1, 0.0), "cluster": (2.2, 0.0)}
    assert {*play(chooser, costs, [300] * 400, 0.0, 8)} == {*costs}


def test_a_slow_machine_is_no_reason_for_a_way_whose_first_batch_takes_seconds() -> None:
    """As in the demo, on two cores beside Airflow: 0.25 s instead of 0.1, and 6 s for the first batch that Spark read."""
    chooser = LaneChooser(DriverLaneSpec(), has_transform=True)
    costs: dict[Lane, tuple[float, float]] = {"direct": (0.24, 10e-6), "driver": (6.0, 0.0), "cluster": (9.0, 0.0)}
    assert {*play(chooser, costs, [119, 425, 30, 20, 9, 630, 1594, 1396, 794, 997, 675, *[429] * 2000], 0.1, 9)} == {"direct"}


def test_a_driver_that_warms_up_is_no_reason_for_a_way_whose_first_batch_takes_seconds() -> None:
    """As in the demo once: after two batches of 2.3 and 1.6 s Spark read the next one, and nothing landed for 11.7 s."""
    chooser, taken = LaneChooser(DriverLaneSpec(), has_transform=True), list[Lane]()
    sizes = [102, 30, 46, 16, 20, 30, 46, 16, 30, 46, 632, 1953, *[1526] * 10, *[250] * 500]
    for number, size in enumerate(sizes):
        lane = chooser.choose(size, may_be_direct=True)
        driver = {10: 2.3, 11: 1.6}.get(number, 0.5 if number < 22 else 0.15)
        seconds = {"direct": driver, "driver": 11.7, "cluster": 13.0}[lane]
        chooser.learn(lane, records=size, value_bytes=400 * size, rows=size, seconds=seconds)
        taken.append(lane)
    assert {*taken} == {"direct"}


@pytest.mark.parametrize("has_transform", [False, True])
def test_cold_executors_are_no_way_out_for_a_driver_that_warms_up_itself(has_transform: bool) -> None:
    """As in containers on two busy cores: 3,000 records took the driver 2.9 s, and the executors' first batch 57 s."""
    chooser = LaneChooser(DriverLaneSpec(), has_transform=has_transform, on_cluster=True)
    busy: dict[Lane, tuple[float, float]] = {"direct": (0.2, 9e-4), "driver": (57.0, 0.0), "cluster": (67.0, 0.0)}
    warm: dict[Lane, tuple[float, float]] = {**busy, "direct": (0.1, 1e-4)}
    taken = play(chooser, busy, [195, 817, 76, 2117, 4228, 4480, *[3145] * 12], 0.1, 9)
    assert {*taken, *play(chooser, warm, [300] * 500, 0.1, 10)} == {"direct"}


@pytest.mark.parametrize("has_transform", [False, True])
@pytest.mark.parametrize("driver_seconds", [5.0, 8.0, 60.0])
def test_a_backlog_is_left_to_cold_executors_once_their_absence_has_cost_as_much(
    has_transform: bool, driver_seconds: float
) -> None:
    """The slower the driver, the sooner; and their first batch, which is slow, says nothing of the next ones."""
    chooser = LaneChooser(DriverLaneSpec(), cores=16, has_transform=has_transform, on_cluster=True)
    taken: list[Lane] = []
    for _ in range(80):
        lane = chooser.choose(LARGE, may_be_direct=True)
        cold = 50.0 if lane != "direct" and {*taken} <= {"direct"} else 0.0
        seconds = {"direct": driver_seconds, "driver": 6.0, "cluster": 1.6}[lane] + cold
        chooser.learn(lane, records=LARGE, value_bytes=180 * LARGE, rows=LARGE, seconds=seconds)
        taken.append(lane)
    alone = taken.index("cluster")
    assert {*taken[:alone]} == {"direct"}
    # The first batches of a transform teach nothing, so the expected costs count.
    assert alone <= (12 if has_transform else 50 / (driver_seconds - 3.5) + 2)
    assert set(taken[-20:]) == {"cluster"}


@pytest.mark.parametrize("has_transform", [False, True])
def test_an_executor_that_replaces_another_costs_one_slow_batch(has_transform: bool) -> None:
    chooser = LaneChooser(DriverLaneSpec(), cores=8, has_transform=has_transform, on_cluster=True)
    costs: dict[Lane, tuple[float, float]] = {"direct": (0.05, 6e-6), "driver": (3.0, 4e-6), "cluster": (0.6, 2e-6)}
    assert play(chooser, costs, [LARGE] * 80, 0.1, 4)[-20:] == ["cluster"] * 20
    assert chooser.choose(LARGE, may_be_direct=True) == "cluster"
    chooser.learn("cluster", records=LARGE, value_bytes=180 * LARGE, rows=LARGE, seconds=59.6)
    assert play(chooser, costs, [LARGE] * 20, 0.1, 5).count("cluster") >= 19


def test_executors_that_became_slow_for_good_are_left() -> None:
    chooser = LaneChooser(DriverLaneSpec(), cores=8, on_cluster=True)
    fast: dict[Lane, tuple[float, float]] = {"direct": (0.05, 6e-6), "cluster": (0.6, 2e-6)}
    slow: dict[Lane, tuple[float, float]] = {"direct": (0.05, 6e-6), "cluster": (60.0, 2e-6)}
    play(chooser, fast, [LARGE] * 80, 0.1, 4)
    assert play(chooser, slow, [LARGE] * 40, 0.1, 5).count("cluster") <= 4, "two that teach it, and tries"
