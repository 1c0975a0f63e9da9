"""The score of a table's health: what must hold for any table, and the sentences that explain it."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.streams.long_form import examples

from lakebound.operations.maintenance.assessment import TableHealth
from lakebound.operations.maintenance.score import OPEN_COST_BYTES, assess, small_below_bytes
from lakebound.operations.maintenance.wording import count_words, size_words
from lakebound.spec.maintenance import MIB, CompactionSpec, MaintenanceSpec
from lakebound.tables.health import FileFacts, MetadataFacts, PartitionFacts, TableFacts

POLICY = MaintenanceSpec()
TARGET = POLICY.compaction.target_file_bytes
SMALL_BELOW = small_below_bytes(POLICY)


def facts(*partitions: list[int], metadata: MetadataFacts | None = None, delete_files: int = 0) -> TableFacts:
    """Return a table of partitions, each given as the sizes of its files; the first has the delete files."""
    return TableFacts(
        table="delta:shop.orders",
        at_ms=1,
        version="1",
        rows=0,
        partitions=tuple(
            PartitionFacts(
                values={"day": f"2026-11-{number + 1:02d}"},
                files=tuple(FileFacts(size_bytes=size, added_at_ms=0) for size in sizes),
                delete_files=0 if number else delete_files,
            )
            for number, sizes in enumerate(partitions)
        ),
        metadata=metadata or MetadataFacts(),
    )


def scored(*partitions: list[int], **more: object) -> TableHealth:
    """Return such a table's health under the default policy."""
    return assess(facts(*partitions, **more), POLICY)  # type: ignore[arg-type]


sizes = st.one_of(st.integers(0, SMALL_BELOW - 1), st.integers(SMALL_BELOW, 4 * TARGET), st.integers(1, 64 * 1024))
tables = st.lists(st.lists(sizes, min_size=1, max_size=12), min_size=1, max_size=4)
added = st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), min_size=1, max_size=20)
metadatas = st.builds(
    MetadataFacts,
    metadata_bytes=st.integers(0, 10**9),
    log_tail_commits=st.integers(0, 10**5),
    log_files=st.integers(0, 10**6),
    manifests=st.integers(0, 10**5),
    dangling_delete_files=st.integers(0, 1000),
)
policies = st.builds(
    MaintenanceSpec,
    compaction=st.builds(
        CompactionSpec,
        target_file_bytes=st.integers(MIB, 1024 * MIB),
        small_file_ratio=st.floats(0.01, 1),
        min_small_files=st.integers(2, 500),
    ),
    max_manifests=st.integers(1, 1000),
    max_log_tail_commits=st.integers(1, 1000),
)


# --- what holds for any table ------------------------------------------------------------------------------------


@settings(max_examples=examples(100))
@given(tables, metadatas, policies, st.integers(0, 50))
def test_the_score_is_what_its_deductions_leave(
    table: list[list[int]], metadata: MetadataFacts, policy: MaintenanceSpec, delete_files: int
) -> None:
    health = assess(facts(*table, metadata=metadata, delete_files=delete_files), policy)
    assert 0 <= health.score <= 100
    assert health.score == round(max(0.0, 100 - sum(one.points for one in health.deductions)), 1)
    assert all(one.points > 0 and one.sentence for one in health.deductions)


@settings(max_examples=examples(100))
@given(tables, metadatas, policies, added)
def test_more_small_files_never_raise_the_score(
    table: list[list[int]], metadata: MetadataFacts, policy: MaintenanceSpec, added: list[tuple[int, float]]
) -> None:
    more = [list(part) for part in [*table, []]]
    for number, share in added:
        more[number % len(more)].append(int(share * (small_below_bytes(policy) - 1)))
    after = assess(facts(*(part for part in more if part), metadata=metadata), policy)
    before = assess(facts(*table, metadata=metadata), policy)
    assert after.score <= before.score
    assert after.removable_files >= before.removable_files


@settings(max_examples=examples(100))
@given(tables, metadatas, metadatas, st.integers(0, 50), st.integers(0, 50))
def test_more_debt_of_any_other_kind_never_raises_the_score(
    table: list[list[int]], one: MetadataFacts, two: MetadataFacts, deletes: int, more_deletes: int
) -> None:
    worse = MetadataFacts(**{name: getattr(one, name) + (getattr(two, name) or 0) for name in one.model_fields_set})
    before = assess(facts(*table, metadata=one, delete_files=deletes), POLICY)
    after = assess(facts(*table, metadata=worse, delete_files=deletes + more_deletes), POLICY)
    assert after.score <= before.score


@settings(max_examples=examples(100))
@given(tables, policies, st.booleans())
def test_after_an_ideal_compaction_a_table_is_healthy(table: list[list[int]], policy: MaintenanceSpec, even: bool) -> None:
    target = policy.compaction.target_file_bytes
    compacted = []
    for part in table:
        count = max(1, ceil(sum(part) / target))
        if even:
            compacted.append([sum(part) // count + (number < sum(part) % count) for number in range(count)])
        else:
            compacted.append([target] * (count - 1) + [sum(part) - target * (count - 1)])
    health = assess(facts(*compacted), policy)
    assert health.score >= 95
    assert (health.files, health.removable_files) == (health.ideal_files, 0)
    assert health.read_amplification == 1


@settings(max_examples=examples(100))
@given(tables)
def test_figures_add_up(table: list[list[int]]) -> None:
    health = scored(*table)
    every = [size for part in table for size in part]
    assert (health.files, health.size_bytes, health.partitions) == (len(every), sum(every), len(table))
    assert sum(one.files for one in health.size_histogram) == len(every)
    assert sum(one.size_bytes for one in health.size_histogram) == sum(every)
    assert health.small_files == sum(size < SMALL_BELOW for size in every)
    assert health.small_bytes == sum(size for size in every if size < SMALL_BELOW)


# --- examples ----------------------------------------------------------------------------------------------------


def test_an_empty_table_is_healthy() -> None:
    health = scored()
    assert (health.score, health.deductions, health.read_amplification, health.ideal_files) == (100, (), 1, 0)


@pytest.mark.parametrize("files", [1, 2, 12])
def test_a_tiny_table_is_healthy(files: int) -> None:
    assert scored([10_000] * files).score > 90


def test_thousands_of_small_commits_are_not() -> None:
    health = scored([5_000] * 2000)
    assert health.score < 50
    assert (health.small_files, health.ideal_files, health.removable_files) == (2000, 1, 1999)
    assert [one.sentence for one in health.deductions] == ["2,000 of 2,000 files are below 96 MiB: compaction would leave 1"]


def test_well_sized_files_outweigh_some_small_ones() -> None:
    assert scored([TARGET] * 5000 + [1000] * 50).score > 99
    assert scored([TARGET] * 50 + [1000] * 50).score < 90


def test_large_files_hide_no_small_ones() -> None:
    assert scored([10 * TARGET] + [1000] * 9).removable_files == 8


def test_small_files_that_are_nearly_large_enough_excuse_no_others() -> None:
    many, with_better = [1000] * 100, [1000] * 100 + [95 * MIB] * 80
    assert scored(with_better).score <= scored(many).score < 100


def test_one_bad_partition_of_a_good_table_shows() -> None:
    health = scored(*[[TARGET] * 500] * 20, [1000] * 2000)
    assert health.score < 75
    assert "2,000 of 2,000 files in partition day=2026-11-21 are below 96 MiB" in health.deductions[0].sentence
    assert [(part.name, part.removable_files) for part in health.worst_partitions] == [("day=2026-11-21", 1999)]


def test_the_worst_partitions_are_ten_at_most_and_the_worst_first() -> None:
    health = scored(*[[1000] * (number + 1) for number in range(15)])
    assert [part.removable_files for part in health.worst_partitions] == list(range(14, 4, -1))


def test_files_that_no_compaction_would_join_cost_nothing() -> None:
    health = scored(*[[1000]] * 25)
    assert health.score == 100 and health.small_files == 25
    assert health.notes == (
        "25 partitions hold 1000 B each on average, and compaction joins no partitions: "
        "a coarser partition_by would give larger files",
    )


def test_read_amplification_counts_opened_files_deletes_and_metadata() -> None:
    health = scored([MIB] * 8, metadata=MetadataFacts(metadata_bytes=2 * MIB), delete_files=1)
    assert health.read_amplification == round((9 * OPEN_COST_BYTES + 8 * MIB + 2 * MIB) / (OPEN_COST_BYTES + 8 * MIB), 2)


@pytest.mark.parametrize(
    ("metadata", "points", "words"),
    [
        (MetadataFacts(log_tail_commits=200), 0, ""),
        (MetadataFacts(log_tail_commits=400), 5, "400 commits since the last log checkpoint"),
        (MetadataFacts(manifests=1000), 9, "1,000 manifests"),
        (MetadataFacts(metadata_bytes=16 * MIB), 0, ""),
        (MetadataFacts(metadata_bytes=160 * MIB), 9, "160 MiB of metadata"),
        (MetadataFacts(log_files=40_000), 2.5, "40,000 files in the log folder"),
        (MetadataFacts(dangling_delete_files=20), 7.5, "20 delete files or vectors"),
        (MetadataFacts(snapshots=100_000, tombstones=100_000), 0, ""),
    ],
)
def test_metadata_costs_points_beyond_its_limit(metadata: MetadataFacts, points: float, words: str) -> None:
    health = scored([TARGET // 2], metadata=metadata)
    assert sum(one.points for one in health.deductions) == points
    assert not words or words in health.deductions[0].sentence


def test_metadata_of_many_well_sized_files_is_no_debt() -> None:
    metadata = MetadataFacts(metadata_bytes=20 * MIB)
    assert scored([TARGET] * 1000, metadata=metadata).score == 100
    assert scored([TARGET], metadata=metadata).score < 100


def test_the_policy_says_what_is_small() -> None:
    policy = MaintenanceSpec(compaction=CompactionSpec(target_file_bytes=MIB, small_file_ratio=0.5, min_small_files=2))
    health = assess(facts([MIB // 2 - 1, MIB // 2, MIB]), policy)
    assert health.small_files == 1
    assert assess(facts([1000] * 20), policy).score < scored([1000] * 20).score


def test_a_histogram_bin_takes_its_upper_bound() -> None:
    bins = {one.up_to_bytes: one.files for one in scored([64 * 1024, 64 * 1024 + 1, 2048 * MIB]).size_histogram if one.files}
    assert bins == {64 * 1024: 1, 256 * 1024: 1, None: 1}


def test_words() -> None:
    assert [size_words(size) for size in (0, 1023, 1024, 8.2 * MIB, 128 * MIB)] == [
        "0 B",
        "1023 B",
        "1 KiB",
        "8.2 MiB",
        "128 MiB",
    ]
    assert [count_words(count, "file") for count in (1, 0, 2000)] == ["1 file", "0 files", "2,000 files"]
