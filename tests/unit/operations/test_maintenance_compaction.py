"""Which partitions are compacted: what makes one due, what leaves it alone, and what fits a run's budget."""

from __future__ import annotations

import pytest
from tests.support.worlds.simulated_engines import facts, files

from lakebound.operations.maintenance.compaction import Candidate, candidates, take
from lakebound.operations.maintenance.history import PastRun
from lakebound.operations.maintenance.steps import Compact
from lakebound.spec.maintenance import MIB, CompactionSpec, MaintenanceSpec
from lakebound.tables.health import FileFacts

DELTA, ICEBERG = "delta:shop.orders", "iceberg:shop.orders"
NOW_MS = 1_800_000_000_000
MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
SPEC = CompactionSpec(target_file_bytes=16 * MIB)
POLICY = MaintenanceSpec(compaction=SPEC)


def small(count: int, age_ms: int = 30 * MINUTE_MS, size: int = 100_000) -> list[FileFacts]:
    return files([size + number for number in range(count)], NOW_MS - age_ms - count)


def large(count: int, age_ms: int = DAY_MS) -> list[FileFacts]:
    return files([15 * MIB] * count, NOW_MS - age_ms)


def look(
    present: list[FileFacts],
    *,
    table: str = DELTA,
    runs: PastRun | None = None,
    policy: MaintenanceSpec = POLICY,
    deletes: int = 0,
) -> Compact | str | None:
    """Return the step for the one partition, or why it is left."""
    found, left = candidates(facts(table, {"": present}, delete_files=deletes), runs or PastRun(table=table), policy, NOW_MS)
    return found[0].step if found else left[0] if left else None


def compaction(
    present: list[FileFacts],
    *,
    table: str = DELTA,
    runs: PastRun | None = None,
    policy: MaintenanceSpec = POLICY,
    deletes: int = 0,
) -> Compact:
    step = look(present, table=table, runs=runs, policy=policy, deletes=deletes)
    assert isinstance(step, Compact), step
    return step


@pytest.mark.parametrize("table", [DELTA, ICEBERG])
@pytest.mark.parametrize(
    ("present", "is_due"),
    [
        (small(20), True),
        (small(19), False),
        (large(100) + small(19), False),
        (small(5, HOUR_MS), True),
        (small(4, HOUR_MS), False),
        (small(5, HOUR_MS - MINUTE_MS), False),
        (small(200, MINUTE_MS), True),
        (small(199, MINUTE_MS), False),
        (small(19, DAY_MS) + small(1, MINUTE_MS), False),
        ([], False),
    ],
)
def test_what_makes_a_partition_due(present: list[FileFacts], is_due: bool, table: str) -> None:
    if present:
        assert isinstance(look(present, table=table), Compact) is is_due


def test_the_reason_has_the_numbers() -> None:
    assert compaction(small(20)).reason == "20 small files; the limit is 20; 20 of 1.9 MiB become 1"
    assert compaction(small(5, 2 * HOUR_MS)).reason == "5 small files, the oldest 2.0 h old; 5 of 488.3 KiB become 1"
    assert compaction(small(300, MINUTE_MS)).reason.startswith(
        "300 small files; the limit while new files still arrive is 200; 300 of"
    )


def test_a_hot_partition_is_left_and_said() -> None:
    assert look(small(150, MINUTE_MS)) == f"{DELTA}: hot, because new files still arrive"
    table = facts(DELTA, {"2026-11-20": small(150, MINUTE_MS), "2026-11-21": small(90, MINUTE_MS), "2026-11-22": small(3)})
    _, left = candidates(table, PastRun(table=DELTA), POLICY, NOW_MS)
    assert left == (f"{DELTA}: day=2026-11-20 and 1 more: hot, because new files still arrive",)


def test_what_would_remove_too_few_files_is_left() -> None:
    step = look(small(20), policy=MaintenanceSpec(compaction=CompactionSpec(target_file_bytes=16 * MIB, min_files_removed=20)))
    assert step == f"{DELTA}: small files, but no worthwhile rewrite removes at least 20 files"


@pytest.mark.parametrize(
    ("ago_ms", "fruitless", "is_due"),
    [
        (299_000, 0, False),
        (300_000, 0, True),
        (1_199_000, 2, False),
        (1_200_000, 2, True),
        (19_199_000, 60, False),
        (19_200_000, 60, True),
    ],
)
def test_a_partition_rests_after_a_rewrite_and_longer_after_each_that_was_in_vain(
    ago_ms: int, fruitless: int, is_due: bool
) -> None:
    runs = PastRun(table=DELTA, compacted_at_ms={"": NOW_MS - ago_ms}, fruitless={"": fruitless})
    found = look(small(50), runs=runs)
    assert isinstance(found, Compact) is is_due
    assert is_due or (isinstance(found, str) and "rewritten less than" in found)
    assert isinstance(look(small(50), runs=PastRun(table=DELTA, compacted_at_ms={"day=x": NOW_MS})), Compact)


def test_partitions_rest_each_for_itself() -> None:
    runs = PastRun(table=DELTA, compacted_at_ms={"day=a": NOW_MS - 1000})
    found, left = candidates(facts(DELTA, {"a": small(50), "b": small(50)}), runs, POLICY, NOW_MS)
    assert [one.step.partition for one in found] == [{"day": "b"}]
    assert left == (f"{DELTA}: day=a: rewritten less than 300 s ago",)


# The budget


def ranked(*tables: tuple[str, dict[str, list[FileFacts]]], policy: MaintenanceSpec = POLICY) -> list[Candidate]:
    return [one for name, parts in tables for one in candidates(facts(name, parts), PastRun(table=name), policy, NOW_MS)[0]]


def test_closed_partitions_come_first_and_then_those_with_most_gain_per_byte() -> None:
    due = ranked(
        (DELTA, {"hot": small(900, MINUTE_MS, size=1000), "dear": small(30, size=300_000), "cheap": small(30, size=1000)}),
        (ICEBERG, {"middling": small(30, size=100_000)}),
    )
    steps, left = take(due, 2**40)
    assert [step.partition["day"] for step in steps] == ["cheap", "middling", "dear", "hot"] and left == ()


def test_what_does_not_fit_the_budget_is_done_in_part_and_named() -> None:
    due = ranked((DELTA, {"a": small(30, size=1000), "b": small(60, size=300_000)}))
    steps, left = take(due, 6 * MIB)
    assert [step.partition["day"] for step in steps] == ["a", "b"]
    assert sum(step.cost_bytes for step in steps) <= 6 * MIB < due[1].step.cost_bytes
    assert steps[1].below_bytes < due[1].step.below_bytes
    assert left == (f"{DELTA}: day=b: 11.4 MiB are beyond this run's budget of 6 MiB",)


def test_what_cannot_be_done_in_part_runs_alone_or_not_at_all() -> None:
    alike = files([300_000] * 60, NOW_MS - HOUR_MS)
    due = ranked((DELTA, {"a": alike}))
    assert [step.cost_bytes for step in take(due, 6 * MIB)[0]] == [60 * 300_000]
    due += ranked((ICEBERG, {"b": small(30, size=1000)}))
    steps, left = take(due, 6 * MIB)
    assert [step.partition["day"] for step in steps] == ["b"] and "17.2 MiB are beyond this run's budget" in left[0]


def test_a_run_takes_no_more_than_its_budget_from_many_partitions() -> None:
    parts = {f"2026-11-{day:02d}": small(30, size=100_000 + day * 100) for day in range(1, 29)}
    steps, left = take(ranked((DELTA, parts)), 20 * MIB)
    assert 15 * MIB < sum(step.cost_bytes for step in steps) <= 20 * MIB
    assert len({step.partition["day"] for step in steps}) + len(left) >= 28
    assert len(take(ranked((DELTA, parts)), MIB)[1]) == 21, "a long list is cut short"


# Order of rows, and deletes

ORDERED = MaintenanceSpec(compaction=CompactionSpec(target_file_bytes=16 * MIB, zorder_by=("site",), sort_by=("at",)))


def test_iceberg_sorts_what_it_rewrites_and_delta_a_whole_partition_once_it_rests() -> None:
    assert compaction(small(20), table=ICEBERG, policy=ORDERED).order_by == ("at",)
    assert compaction(small(20), policy=ORDERED).order_by == (), "files came less than an hour ago"
    step = compaction(large(3, 2 * HOUR_MS) + small(2, 2 * HOUR_MS), policy=ORDERED)
    assert step.order_by == ("site",) and step.cost_bytes > 45 * MIB and "not ordered by site" in step.reason


@pytest.mark.parametrize(
    ("present", "ordered_ago_ms", "is_due"),
    [
        (large(4, 3 * HOUR_MS), 2 * HOUR_MS, False),
        (large(4, 3 * HOUR_MS) + large(3, 2 * HOUR_MS), 2 * HOUR_MS + 30 * MINUTE_MS, False),
        (large(4, 3 * HOUR_MS) + large(4, 2 * HOUR_MS), 2 * HOUR_MS + 30 * MINUTE_MS, True),
        (large(1, 3 * HOUR_MS), None, False),
        (large(4, 3 * DAY_MS), None, False),
    ],
)
def test_a_partition_is_ordered_again_when_as_much_has_come(
    present: list[FileFacts], ordered_ago_ms: int | None, is_due: bool
) -> None:
    ordered = {} if ordered_ago_ms is None else {"": NOW_MS - ordered_ago_ms}
    assert isinstance(look(present, policy=ORDERED, runs=PastRun(table=DELTA, ordered_at_ms=ordered)), Compact) is is_due


def test_delete_files_make_an_iceberg_partition_due_once_a_day() -> None:
    step = compaction(large(3), table=ICEBERG, deletes=21)
    assert step.with_deletes and step.cost_bytes == 45 * MIB and step.reason == "21 delete files"
    assert look(large(3), table=ICEBERG, deletes=20) is None
    for ago_ms, is_due in ((23 * HOUR_MS, False), (24 * HOUR_MS, True)):
        runs = PastRun(table=ICEBERG, compacted_at_ms={"": NOW_MS - ago_ms})
        assert isinstance(look(large(3), table=ICEBERG, runs=runs, deletes=21), Compact) is is_due


def test_delta_files_with_deletion_vectors_are_left_to_spark() -> None:
    assert "deletion vectors, which only Spark knows" in str(look(small(50), deletes=1))


@pytest.mark.parametrize("properties", [{"delta.enableDeletionVectors": "true"}, {"delta.columnMapping.mode": "name"}])
def test_delta_tables_that_only_spark_understands_are_left(properties: dict[str, str]) -> None:
    for table, is_left in ((DELTA, True), (ICEBERG, False)):
        present = facts(table, {"": small(50)}).model_copy(update={"properties": properties})
        found, left = candidates(present, PastRun(table=table), POLICY, NOW_MS)
        assert (not found and "switched on" in left[0]) is is_left
