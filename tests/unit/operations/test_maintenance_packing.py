"""Which small files are written together: the count stays bounded, a byte is not written again and again, and it ends."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples
from tests.support.worlds.simulated_engines import facts, files, rewritten

from lakebound.operations.maintenance.compaction import candidates
from lakebound.operations.maintenance.history import PastRun
from lakebound.operations.maintenance.packing import GROWTH, delta_bins, even_bins, iceberg_files_written, pack, small_below
from lakebound.operations.maintenance.steps import Compact
from lakebound.spec.maintenance import MIB, CompactionSpec, MaintenanceSpec
from lakebound.tables.health import FileFacts

FORMATS = ("delta:shop.orders", "iceberg:shop.orders")
KIB = 1024
TARGET = 16 * MIB
SPEC = CompactionSpec(target_file_bytes=TARGET, max_bytes_per_run=2**50)
POLICY = MaintenanceSpec(compaction=SPEC, cooldown_seconds=0)
LATER_MS = 10_000_000_000
"""Hours after every file of a test came: its partition is closed."""


def planned(table: str, present: list[FileFacts], now_ms: int = LATER_MS) -> Compact | None:
    found, _ = candidates(facts(table, {"": present}), PastRun(table=table), POLICY, now_ms)
    return found[0].step if found else None


@pytest.mark.parametrize("table", FORMATS)
@pytest.mark.parametrize("size", [2 * KIB, 20 * KIB, 100 * KIB])
def test_a_first_run_over_tiny_files_leaves_hardly_more_than_the_ideal(table: str, size: int) -> None:
    present = files([size + number % 7 * 100 for number in range(2000)])
    step = planned(table, present)
    assert step is not None and step.below_bytes == small_below(SPEC) and step.target_file_bytes == TARGET
    after, cost = rewritten(step, present, 1)
    assert len(after) <= 1.2 * ceil(sum(file.size_bytes for file in present) / TARGET)
    assert step.cost_bytes == cost
    assert step.files_removed == pytest.approx(2000 - len(after), abs=2), "large rewrites are several commits"


@pytest.mark.parametrize("table", FORMATS)
def test_a_large_file_is_not_rewritten_to_take_in_little(table: str) -> None:
    present = files([10 * MIB, *[50 * KIB] * 30])
    step = planned(table, present)
    assert step is not None and step.below_bytes == 10 * MIB and step.cost_bytes == 30 * 50 * KIB


@pytest.mark.parametrize("table", FORMATS)
def test_a_gap_in_the_sizes_does_not_stop_what_is_worth_it(table: str) -> None:
    """Thirty files of one MiB are more than twice as good as files of the target, whatever tiny ones lie before them."""
    step = planned(table, files([5 * KIB, *[MIB] * 30]))
    assert step is not None and step.cost_bytes == 30 * MIB + 5 * KIB
    assert step.files_removed == 31 - 2


@pytest.mark.parametrize("table", FORMATS)
def test_two_half_full_files_are_not_split_anew_for_each_crumb(table: str) -> None:
    """Together they are more than a target, and would come out as two again."""
    half = 9 * MIB
    step = planned(table, files([half, half + 1, *[10 * KIB] * 20]))
    assert step is not None and step.below_bytes == half


def test_what_is_rewritten_can_be_bounded() -> None:
    present = files([(100 + number) * KIB for number in range(60)])
    whole, part = pack(present, SPEC, joins_neighbours=False), pack(present, SPEC, joins_neighbours=False, max_bytes=3 * MIB)
    assert whole is not None and part is not None
    assert part.cost_bytes <= 3 * MIB < whole.cost_bytes and part.below_bytes < whole.below_bytes
    assert pack(files([MIB] * 60), SPEC, joins_neighbours=False, max_bytes=3 * MIB) is None, "no bound lies between equal sizes"


@pytest.mark.parametrize(
    ("total", "below", "written"),
    [
        (0, 75, 1),
        (99, 75, 1),
        (100, 75, 1),
        (109, 75, 1),
        (110, 75, 1),
        (111, 75, 2),
        (175, 75, 2),
        (176, 75, 2),
        (1009, 75, 10),
        (1080, 75, 11),
    ],
)
def test_iceberg_rounds_as_its_planner_does(total: int, below: int, written: int) -> None:
    assert iceberg_files_written(total, below, 100) == written


@given(sizes=st.lists(st.integers(0, 96 * MIB), min_size=1, max_size=60), count=st.integers(1, 20))
@example(sizes=[0, 0], count=1)
@example(sizes=[1, 0], count=1)
@example(sizes=[70 * MIB] * 20, count=11)
def test_neighbours_are_joined_evenly_and_nothing_is_written_alone(sizes: list[int], count: int) -> None:
    bins = even_bins(sizes, count)
    taken = [number for joined in bins for number in joined]
    assert taken == sorted(set(taken)) and all(len(joined) > 1 for joined in bins) and len(bins) <= count
    assert bins or len(sizes) <= count, "there is always something to join"
    assert all(sum(sizes[number] for number in joined) <= sum(sizes) / count + max(sizes) for joined in bins)


def test_delta_joins_neighbours_in_time() -> None:
    present = [FileFacts(size_bytes=size, added_at_ms=at) for size, at in ((40, 3), (50, 1), (60, 2), (30, 4), (90, 5))]
    assert [[file.size_bytes for file in joined] for joined in delta_bins(present, 100)] == [[60, 40]]
    assert [[file.size_bytes for file in joined] for joined in delta_bins(present, 130)] == [[50, 60], [40, 30]]


SIZES = st.one_of(st.integers(KIB, 64 * KIB), st.integers(KIB, 2 * MIB), st.integers(KIB, TARGET))


SECOND_RUN = [
    [*[1024] * 5, 4470, 13019, 50550, 65535, 137988, 4679420],
    [1024, 1434, 2550, 1028, 2808, 2814, 4470, 5531, 13019, 44878, 50550, 65535, 429200, 5580942],
    [1024, 2196, 2220, 527688],
    [1024, 1024, 1024, 2612, 6267, 34149, 206668, 899067, 3930370],
]


@settings(max_examples=examples(150))
@example(rounds=SECOND_RUN, table="delta:shop.orders")
@given(rounds=st.lists(st.lists(SIZES, min_size=0, max_size=60), min_size=1, max_size=25), table=st.sampled_from(FORMATS))
def test_rounds_of_appends_and_runs(rounds: list[list[int]], table: str) -> None:
    present: list[FileFacts] = []
    ingested = rewrote = 0
    for number, sizes in enumerate(rounds):
        at_ms = number * 1_000_000
        present += files(sizes, at_ms)
        ingested += sum(sizes)
        # Mostly one run. After it the order in time differs, and with it what Delta's engine joins: a second may be due.
        while present and (step := planned(table, present)) is not None:
            after, cost = rewritten(step, present, at_ms + 1000)
            assert len(present) - len(after) >= SPEC.min_files_removed - 1, "a run without gain"
            assert sum(file.size_bytes for file in present) - sum(file.size_bytes for file in after) < len(after)
            present, rewrote = after, rewrote + cost
    small = [file.size_bytes for file in present if file.size_bytes < small_below(SPEC)]
    assert len(small) < SPEC.min_small_files + log2(TARGET / KIB) + ceil(ingested / TARGET)
    assert rewrote <= ingested * (2 + log2(TARGET / KIB) / log2(GROWTH))
