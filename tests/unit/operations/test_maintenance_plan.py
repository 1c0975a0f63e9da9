"""The plan of a run: which steps are due, in which order, with which numbers; what is left; and dangerous properties."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.worlds.simulated_engines import facts as facts_of
from tests.support.worlds.simulated_engines import files

from lakebound.ledger.entry import EntryKind
from lakebound.operations.maintenance.history import PastRun, TablePast, Version
from lakebound.operations.maintenance.plan import TableSituation, plan
from lakebound.operations.maintenance.planning_rules import property_warnings
from lakebound.operations.maintenance.refusals import Refusals, refusals_of, refused_settings
from lakebound.operations.maintenance.steps import CleanLog, ExpireSnapshots, MaintenancePlan, RemoveOrphans, Vacuum
from lakebound.spec.maintenance import DAY_SECONDS, HOUR_SECONDS, MIB, CompactionSpec, MaintenanceSpec, OrphansSpec
from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import RestCatalogSpec, WarehouseSpec
from lakebound.tables.health import FileFacts, MetadataFacts, TableFacts
from lakebound.tables.places import Places, local_places

DELTA, ICEBERG = "delta:shop.orders", "iceberg:shop.orders"
NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
POLICY = MaintenanceSpec()
NOTHING_DUE = PastRun(table="", vacuumed_at_ms=NOW_MS, vacuumed_full_at_ms=NOW_MS, orphans_at_ms=NOW_MS)
NEVER = PastRun(table="")


def situation(
    table: str, sizes: int = 0, *, rows: int = 1, deletes: int = 0, properties: dict[str, str] | None = None, **metadata: int
) -> TableFacts:
    """Return a table of so many small files."""
    found: list[FileFacts] = files([10_000 + number for number in range(sizes)], NOW_MS - DAY_MS)
    made = facts_of(table, {"": found} if found else {}, NOW_MS, deletes)
    return made.model_copy(
        update={"rows": rows, "metadata": MetadataFacts.model_validate(metadata), "properties": properties or {}}
    )


def past(
    table: str, commits: int, *, every_seconds: float = 60, kind: EntryKind = "land", problems: tuple[str, ...] = ()
) -> TablePast:
    """Return commits up to now; Delta with a log checkpoint each 50."""
    start_ms = NOW_MS - round((commits - 1) * every_seconds * 1000)
    versions = tuple(
        Version(
            version=number,
            committed_at_ms=start_ms + round(number * every_seconds * 1000),
            parent=number - 1 if number else None,
            kind=kind,
        )
        for number in range(commits)
    )
    checkpoints = tuple(range(0, commits, 50)) if table == DELTA else ()
    current = commits - 1 if commits else None
    return TablePast(table=table, versions=versions, current=current, checkpoints=checkpoints, problems=problems)


def kinds(found: MaintenancePlan) -> list[str]:
    return [step.kind for step in found.steps]


def planned(
    facts: TableFacts, table_past: TablePast, runs: PastRun = NOTHING_DUE, policy: MaintenanceSpec = POLICY
) -> MaintenancePlan:
    """Return the plan of a run that has this one table."""
    return plan("", [TableSituation(facts.table, facts, table_past, runs)], policy, NOW_MS)


def nothing_but(left: str) -> MaintenancePlan:
    return MaintenancePlan(pipeline="", at_ms=NOW_MS, left=(left,))


def test_delta_has_its_steps_in_this_order() -> None:
    found = planned(situation(DELTA, 50, log_tail_commits=300, tombstones=9), past(DELTA, 5000), NEVER)
    assert kinds(found) == ["compact", "checkpoint_log", "vacuum", "clean_log", "remove_orphans"]
    assert [step.table for step in found.steps] == [DELTA] * 5
    assert all(any(letter.isdigit() for letter in step.reason) for step in found.steps), "each reason has its numbers"


def test_iceberg_has_its_steps_in_this_order() -> None:
    found = planned(situation(ICEBERG, 50, deletes=30, manifests=500, dangling_delete_files=2), past(ICEBERG, 5000), NEVER)
    assert kinds(found) == [
        "expire_snapshots",
        "compact",
        "rewrite_position_deletes",
        "rewrite_manifests",
        "remove_orphans",
    ]
    assert all(any(letter.isdigit() for letter in step.reason) for step in found.steps)


@pytest.mark.parametrize("table", [DELTA, ICEBERG])
def test_a_table_that_needs_nothing_gets_nothing(table: str) -> None:
    found = planned(situation(table, 3, log_tail_commits=200, manifests=100), past(table, 100))
    assert (found.steps, found.left, found.warnings) == ((), (), ())


@pytest.mark.parametrize("table", [DELTA, ICEBERG])
def test_tables_without_anything_are_said(table: str) -> None:
    assert planned(situation(table, rows=0), past(table, 0), NEVER) == nothing_but(f"{table}: it has no commit yet")
    empty = planned(situation(table, rows=0), past(table, 2))
    assert empty == nothing_but(f"{table}: it holds no rows, so there are no files to rewrite")
    missing = TableSituation(table, None, None, NEVER)
    torn = TableSituation("delta:shop.torn", None, None, NEVER, problem="its log is torn")
    found = plan("orders", [missing, torn], POLICY, NOW_MS)
    assert found.left == (f"{table}: there is no such table yet", "delta:shop.torn: its log is torn") and not found.steps


def test_maintenance_that_is_off_plans_nothing() -> None:
    one = TableSituation(DELTA, situation(DELTA, 500), past(DELTA, 5000), NEVER)
    found = plan("orders", [one], MaintenanceSpec(enabled=False), NOW_MS)
    assert found.steps == () and "maintenance.enabled is false" in found.left[0]


def test_one_budget_for_all_tables_and_each_tables_steps_together() -> None:
    tight = MaintenanceSpec(compaction=CompactionSpec(max_bytes_per_run=MIB))
    tables = [
        TableSituation("delta:shop.a", situation("delta:shop.a", 60, tombstones=1), past(DELTA, 60), NEVER),
        TableSituation("iceberg:shop.b", situation("iceberg:shop.b", 60), past(ICEBERG, 60), NEVER),
    ]
    found = plan("orders", tables, tight, NOW_MS)
    assert sum(step.cost_bytes for step in found.steps) <= MIB
    names = [step.table for step in found.steps]
    assert names == sorted(names) and {step.kind for step in found.steps} == {"compact", "vacuum", "remove_orphans"}
    assert len(found.left) == 1 and "beyond this run's budget" in found.left[0]


def test_a_problem_of_the_past_stops_what_takes_away_and_is_said() -> None:
    torn = "reader 'dashboard': its checkpoint is torn"
    for table in (DELTA, ICEBERG):
        found = planned(situation(table, 50, log_tail_commits=300), past(table, 5000, problems=(torn,)), NEVER)
        assert set(kinds(found)) <= {"compact", "checkpoint_log"} and "compact" in kinds(found)
        assert found.left == (f"{table}: none of its old versions is removed: {torn}",)


def test_a_reader_that_stands_still_is_said() -> None:
    for table in (DELTA, ICEBERG):
        reads = past(table, 5000).model_copy(update={"pins": {"dashboard": 4000, "nightly": 4990}})
        found = planned(situation(table, 1), reads)
        assert found.left == (
            f"{table}: reader 'dashboard' last read a version of 16.6 hours ago; "
            f"all later versions are kept until it continues",
        )


@pytest.mark.parametrize(
    ("runs", "tombstones", "files_small", "mode"),
    [
        (PastRun(table=DELTA, vacuumed_at_ms=NOW_MS - DAY_MS, vacuumed_full_at_ms=NOW_MS - 7 * DAY_MS), 0, 0, "full"),
        (PastRun(table=DELTA, vacuumed_at_ms=NOW_MS - DAY_MS, vacuumed_full_at_ms=NOW_MS - 6 * DAY_MS), 1, 0, "lite"),
        (PastRun(table=DELTA, vacuumed_at_ms=NOW_MS - DAY_MS, vacuumed_full_at_ms=NOW_MS - 6 * DAY_MS), 0, 0, None),
        (PastRun(table=DELTA, vacuumed_at_ms=NOW_MS - 23 * HOUR_MS, vacuumed_full_at_ms=NOW_MS), 1, 0, None),
        (PastRun(table=DELTA, vacuumed_at_ms=NOW_MS - HOUR_MS, vacuumed_full_at_ms=NOW_MS), 1, 50, "lite"),
        (PastRun(table=DELTA, vacuumed_at_ms=NOW_MS - HOUR_MS + 1, vacuumed_full_at_ms=NOW_MS), 1, 50, None),
        (NEVER, 0, 0, "full"),
    ],
)
def test_when_files_are_vacuumed(runs: PastRun, tombstones: int, files_small: int, mode: str | None) -> None:
    found = planned(situation(DELTA, files_small, tombstones=tombstones), past(DELTA, 10), runs)
    (step,) = [step for step in found.steps if isinstance(step, Vacuum)] or [None]
    assert (step and step.mode) == mode
    if step is not None:
        assert step.retention_seconds == (3 * DAY_SECONDS if mode == "full" else DAY_SECONDS)


def test_files_that_go_to_quarantine_first_are_not_vacuumed_in_full() -> None:
    careful = MaintenanceSpec(orphans=OrphansSpec(mode="quarantine"))
    found = planned(situation(DELTA, tombstones=1), past(DELTA, 10), NEVER, careful)
    assert [step.mode for step in found.steps if isinstance(step, Vacuum | RemoveOrphans)] == ["lite", "quarantine"]


def test_orphans_are_looked_for_each_week_and_are_old() -> None:
    (step,) = planned(situation(ICEBERG, 1), past(ICEBERG, 10), NEVER).steps
    assert isinstance(step, RemoveOrphans) and step.mode == "dry_run"
    assert step.older_than_ms == NOW_MS - 3 * DAY_MS and step.delete_quarantined_before_ms == NOW_MS - 7 * DAY_MS
    for ago_ms, count in ((7 * DAY_MS - 1, 0), (7 * DAY_MS, 1)):
        runs = PastRun(table=ICEBERG, orphans_at_ms=NOW_MS - ago_ms)
        assert len(planned(situation(ICEBERG, 1), past(ICEBERG, 10), runs).steps) == count
    off = MaintenanceSpec(orphans=OrphansSpec(mode="off"))
    assert planned(situation(ICEBERG, 1), past(ICEBERG, 10), NEVER, off).steps == ()


def test_history_beyond_the_policy_goes() -> None:
    (step,) = planned(situation(ICEBERG, 1), past(ICEBERG, 5000)).steps
    assert isinstance(step, ExpireSnapshots) and step.files_removed == len(step.snapshot_ids) > 4000
    assert step.reason == f"maintenance.history no longer keeps {len(step.snapshot_ids):,} of 5,000 snapshots"
    (cut,) = planned(situation(DELTA, 1), past(DELTA, 5000)).steps
    assert isinstance(cut, CleanLog) and (cut.before_version, cut.files_removed) == (4600, 4600)
    assert planned(situation(DELTA, 1), past(DELTA, 400)).steps == (), "too little to be worth a look"


def test_manifests_and_the_tail_of_the_log() -> None:
    (manifests,) = planned(situation(ICEBERG, 1, manifests=101), past(ICEBERG, 10)).steps
    assert (manifests.kind, manifests.files_removed) == ("rewrite_manifests", 100)
    (tail,) = planned(situation(DELTA, 1, log_tail_commits=201), past(DELTA, 10)).steps
    assert tail.kind == "checkpoint_log" and "201 commits" in tail.reason


# Dangerous properties


@pytest.mark.parametrize(
    ("table", "name", "value", "fix"),
    [
        (DELTA, "delta.setTransactionRetentionDuration", "interval 6 days", "unset the property"),
        (DELTA, "delta.setTransactionRetentionDuration", "soon", "write it as 'interval 7 days'"),
        (DELTA, "delta.logRetentionDuration", "interval 23 hours", "raise it, or unset it"),
        (DELTA, "delta.deletedFileRetentionDuration", "interval 1 hour", "raise it, or unset it"),
        (DELTA, "delta.autoOptimize.autoCompact", "true", "unset it"),
        (DELTA, "delta.autoOptimize.optimizeWrite", "true", "unset it"),
        (DELTA, "delta.enableExpiredLogCleanup", "false", "unset it"),
        (DELTA, "delta.checkpointPolicy", "v2", "set it to classic"),
        (DELTA, "delta.checkpointInterval", "5000", "set it to at most 200"),
        (DELTA, "delta.enableDeletionVectors", "true", "unset it"),
        (DELTA, "delta.columnMapping.mode", "name", "set it to none"),
        (ICEBERG, "write.metadata.delete-after-commit.enabled", "false", "set it to true"),
        (ICEBERG, "write.metadata.previous-versions-max", "5000", "set it to at most 100"),
        (ICEBERG, "history.expire.max-snapshot-age-ms", "432000000", "set it to at least 604800000"),
        (ICEBERG, "history.expire.min-snapshots-to-keep", "100000", "lower it"),
        (ICEBERG, "gc.enabled", "false", "unset it"),
        (ICEBERG, "write.target-file-size-bytes", "1048576", "set it to 134217728"),
        (ICEBERG, "write.distribution-mode", "hash", "set it to none"),
        (ICEBERG, "commit.retry.num-retries", "0", "unset it"),
    ],
)
def test_a_dangerous_property_is_said_with_the_fix(table: str, name: str, value: str, fix: str) -> None:
    (sentence,) = property_warnings(table, {name: value}, POLICY)
    assert sentence.startswith(f"{table}: {name}") and fix in sentence
    assert planned(situation(table, 1, properties={name: value}), past(table, 10)).warnings == (sentence,)


@pytest.mark.parametrize(
    ("table", "properties"),
    [
        (
            DELTA,
            {"delta.checkpointInterval": "50", "delta.enableExpiredLogCleanup": "true", "delta.checkpointPolicy": "classic"},
        ),
        (DELTA, {"delta.logRetentionDuration": "interval 30 days", "delta.deletedFileRetentionDuration": "interval 1 week"}),
        (DELTA, {"delta.setTransactionRetentionDuration": "interval 7 days", "delta.columnMapping.mode": "none"}),
        (ICEBERG, {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "20"}),
        (ICEBERG, {"history.expire.max-snapshot-age-ms": "604800000", "gc.enabled": "true", "commit.retry.num-retries": "100"}),
        (ICEBERG, {"write.target-file-size-bytes": "536870912", "write.distribution-mode": "none"}),
    ],
)
def test_what_is_in_order_is_not_said(table: str, properties: dict[str, str]) -> None:
    assert property_warnings(table, properties, POLICY) == ()


def test_the_policy_decides_what_is_too_short() -> None:
    long = POLICY.model_copy(update={"history": POLICY.history.model_copy(update={"undo_seconds": 400 * HOUR_SECONDS})})
    assert property_warnings(DELTA, {"delta.logRetentionDuration": "interval 2 weeks"}, POLICY) == ()
    (sentence,) = property_warnings(DELTA, {"delta.logRetentionDuration": "interval 2 weeks"}, long)
    assert "less than 400 hours" in sentence


def test_what_cannot_be_done_where_a_table_lies_is_said_and_not_planned() -> None:
    facts = situation(ICEBERG, 50, deletes=30, manifests=500, dangling_delete_files=2)
    refusals = Refusals(sparks=f"{ICEBERG}: not rewritten", moves=f"{ICEBERG}: not moved")
    policy = MaintenanceSpec(orphans=OrphansSpec(mode="quarantine"))
    found = plan("", [TableSituation(ICEBERG, facts, past(ICEBERG, 5000), NEVER, refusals=refusals)], policy, NOW_MS)
    assert kinds(found) == ["expire_snapshots"]
    assert found.left == (f"{ICEBERG}: not rewritten", f"{ICEBERG}: not moved")
    found = plan("", [TableSituation(ICEBERG, facts, past(ICEBERG, 5000), NEVER, refusals=refusals)], POLICY, NOW_MS)
    assert kinds(found) == ["expire_snapshots", "remove_orphans"]
    quiet = TableSituation(ICEBERG, situation(ICEBERG, 3), past(ICEBERG, 100), NOTHING_DUE, refusals=refusals)
    assert plan("", [quiet], policy, NOW_MS).left == ()


def test_small_files_are_compacted_wherever_a_table_lies() -> None:
    refusals = Refusals(sparks=f"{ICEBERG}: not rewritten")
    small = TableSituation(ICEBERG, situation(ICEBERG, 50), past(ICEBERG, 100), NOTHING_DUE, refusals=refusals)
    found = plan("", [small], POLICY, NOW_MS)
    assert kinds(found) == ["compact"] and found.left == ()
    many = replace(small, facts=situation(ICEBERG, 50, manifests=500))
    found = plan("", [many], POLICY, NOW_MS)
    assert kinds(found) == ["compact"] and found.left == (f"{ICEBERG}: not rewritten",)


def test_files_of_an_older_partitioning_are_planned_for_spark_alone() -> None:
    """Without Spark they would be planned at each run, and no run would rewrite them."""
    newer, older = situation(ICEBERG, 50), situation(ICEBERG, 60)
    of_older = [file.model_copy(update={"is_of_older_spec": True}) for file in older.partitions[0].files]
    both = (newer.partitions[0].model_copy(update={"files": (*newer.partitions[0].files, *of_older)}),)
    only = (newer.partitions[0].model_copy(update={"files": tuple(of_older)}),)
    for partitions, taken in ((both, 50), (only, 0)):
        facts = newer.model_copy(update={"partitions": partitions})
        one = TableSituation(ICEBERG, facts, past(ICEBERG, 100), NOTHING_DUE)
        without = replace(one, refusals=Refusals(sparks=f"{ICEBERG}: not rewritten"))
        found = plan("", [without], POLICY, NOW_MS)
        assert [step.reason.partition(" small")[0] for step in found.steps] == ([str(taken)] if taken else [])
        assert found.left == (
            f"{ICEBERG}: 60 small files of an older partitioning are not rewritten, because only Spark can do that, "
            f"and Lakebound's Spark does not reach this catalog. Use another engine",
        )
        (step,) = plan("", [one], POLICY, NOW_MS).steps
        assert step.reason.startswith(f"{60 + taken} small")


def test_what_is_refused_depends_on_catalog_and_store() -> None:
    lake = WarehouseSpec(location="s3://bucket/lake", catalog=RestCatalogSpec(type="rest", uri="https://catalog.example.com"))
    stored, here = Places(home=Path("/home"), warehouse=lake), local_places(Path("/home"), Path("/lake"))
    delta, iceberg = (TableSpec(format=name, name="shop.orders") for name in ("delta", "iceberg"))
    assert refusals_of(delta, here) == refusals_of(iceberg, here) == Refusals()
    assert refusals_of(delta, stored).sparks == "" and "set maintenance.orphans.mode" in refusals_of(delta, stored).moves
    assert refusals_of(iceberg, stored).sparks.startswith("iceberg:shop.orders: Spark cannot maintain it")
    policy = MaintenanceSpec(orphans=OrphansSpec(mode="quarantine"))
    assert len(refused_settings((delta, iceberg), policy, stored)) == 2
    assert refused_settings((delta,), policy, here) == refused_settings((delta,), POLICY, stored) == []
