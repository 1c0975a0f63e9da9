"""What real tables' versions say of themselves, who stands on which, and the record of runs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import draft, offsets
from tests.support.tables.maintained import compaction, rewrite_iceberg, small_commits

from lakebound.control.folder import ControlFolder
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.history import TablePast
from lakebound.operations.maintenance.past_reading import past_run, read_past, read_runs, record_run
from lakebound.operations.maintenance.steps import (
    CleanLog,
    Compact,
    ExpireSnapshots,
    MaintenanceStep,
    RemoveOrphans,
    RunReport,
    StepReport,
    Vacuum,
)
from lakebound.spec.maintenance import ReaderSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

DELTA = TableSpec(format="delta", name="shop.orders")
ICEBERG = TableSpec(format="iceberg", name="shop.orders")


def past_of(spec: TableSpec, at: Places, *readers: ReaderSpec) -> TablePast:
    past = read_past(spec, at.read_only(), readers)
    assert past is not None
    return past


def compacted(spec: TableSpec, at: Places) -> None:
    """Make a commit that carries the entry."""
    if spec.format == "delta":
        DeltaEngine(at).compact(spec, compaction(spec))
    else:
        rewrite_iceberg(spec, at)


def go_back(spec: TableSpec, at: Places, end: int) -> None:
    """Rewind to what had landed [0, end)."""
    table = open_table(spec, at)
    back = next(one for one in table.history().versions() if one.entry is not None and one.entry.coverage == offsets(0, end))
    assert back.entry is not None
    table.restore(back.version, draft(0, 0, kind="reset").model_copy(update={"coverage": back.entry.coverage}))


def test_a_table_that_is_not_there_has_no_past(spec: TableSpec, at: Places) -> None:
    assert read_past(spec, at.read_only(), []) is None
    assert not at.root.path.exists(), "looking makes nothing"


def test_kinds_and_times_are_those_that_the_table_itself_tells(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 4)
    compacted(spec, at)
    past, told = past_of(spec, at), list(open_table(spec, at).history().versions())[::-1]
    assert [version.kind for version in past.versions] == ["genesis", "land", "land", "land", "land", "carry"]
    assert [str(version.version) for version in past.versions] == [version.version for version in told]
    assert [version.committed_at_ms for version in past.versions] == [version.committed_at_ms for version in told]
    assert past.current == past.versions[-1].version and past.problems == ()
    assert [version.parent for version in past.versions[1:]] == [version.version for version in past.versions[:-1]]
    assert past.over_time() == tuple((version.committed_at_ms, version) for version in past.versions)


def test_what_a_rewind_left_is_known_with_its_time(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 5)
    go_back(spec, at, 2)
    small_commits(spec, at, 2, start=2)
    past, told = past_of(spec, at), [one.version for one in open_table(spec, at).history().versions()][::-1]
    kinds = [version.kind for version in past.versions]
    assert kinds == ["genesis", *["land"] * 5, "reset", "land", "land"]
    left, reset = past.versions[5], past.versions[6]
    assert past.was_current == {left.version: reset.committed_at_ms}
    assert [str(version.version) for _, version in past.over_time()] == told


def test_a_foreign_commit_has_no_kind(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 2)
    if spec.format == "delta":
        DeltaTable(str(at.delta_path(spec))).alter.set_table_properties({"delta.checkpointInterval": "9"})
    else:
        foreign_iceberg(spec, at).append(foreign_iceberg(spec, at).scan().to_arrow())
    past = past_of(spec, at)
    assert [version.kind for version in past.versions][-2:] == ["land", None]


def test_a_delta_table_restored_by_hand_is_seen(at: Places) -> None:
    small_commits(DELTA, at, 4)
    DeltaTable(str(at.delta_path(DELTA))).restore(2)
    past = past_of(DELTA, at)
    assert past.was_current == {4: past.versions[-1].committed_at_ms} and past.versions[-1].kind is None


def test_delta_log_checkpoints_and_the_first_gap(at: Places) -> None:
    app = small_commits(DELTA, at, 7)
    DeltaTable(str(at.delta_path(DELTA))).create_checkpoint()
    app.land(7, 9)
    log = at.delta_path(DELTA) / "_delta_log"
    (log / f"{3:020d}.json").unlink()
    past = past_of(DELTA, at)
    assert past.checkpoints == (7,) and [version.version for version in past.versions] == [4, 5, 6, 7, 8]


def test_tags_and_branches_are_references(at: Places) -> None:
    small_commits(ICEBERG, at, 4)
    tagged = past_of(ICEBERG, at).versions[2].version
    foreign_iceberg(ICEBERG, at).manage_snapshots().create_tag(tagged, "audit").commit()
    past = past_of(ICEBERG, at)
    assert [version.version for version in past.versions if version.is_referenced] == [tagged, past.current]


def test_an_entry_that_cannot_be_read_is_a_problem(at: Places) -> None:
    small_commits(DELTA, at, 3)
    newest = at.delta_path(DELTA) / "_delta_log" / f"{3:020d}.json"
    newest.write_text(newest.read_text().replace('\\"rows\\":1', '\\"rows\\":-1'))
    (problem,) = past_of(DELTA, at).problems
    assert "cannot be read" in problem and "greater than or equal to 0" in problem


def test_ten_thousand_commits_are_read_quickly(at: Places) -> None:
    """The quick look and the full one say the same; the budget is loose, for a machine that does other things, too."""
    small_commits(DELTA, at, 2)
    log = at.delta_path(DELTA) / "_delta_log"
    text = (log / f"{2:020d}.json").read_text()
    for number in range(3, 10_001):
        (log / f"{number:020d}.json").write_text(text)
    started = time.process_time()
    past = past_of(DELTA, at)
    assert time.process_time() - started < 6
    assert len(past.versions) == 10_001 and {version.kind for version in past.versions[1:]} == {"land"}


# Readers


def checkpoint_of(folder: Path, *sources: str, batch: int = 3, commits: int | None = None) -> Path:
    """Write a checkpoint as Spark does, with the offset of each source at the end of a batch."""
    lines = ["v1", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": {}}), *sources]
    for name, content in (("offsets", "\n".join(lines)), ("commits", 'v1\n{"nextBatchWatermarkMs":0}')):
        (folder / name).mkdir(parents=True, exist_ok=True)
        number = batch if name == "offsets" or commits is None else commits
        (folder / name / str(number)).write_text(content)
    return folder


def delta_offset(table_id: str, version: int) -> str:
    return json.dumps(
        {"sourceVersion": 1, "reservoirId": table_id, "reservoirVersion": version, "index": -1, "isStartingVersion": False}
    )


def iceberg_offset(snapshot: int) -> str:
    return json.dumps({"version": 1, "snapshot_id": snapshot, "position": 1, "scan_all_files": False})


def test_a_delta_reader_is_found_by_the_tables_id(at: Places) -> None:
    small_commits(DELTA, at, 5)
    own = DeltaTable(str(at.delta_path(DELTA))).metadata().id
    folder = checkpoint_of(at.home / "reader", delta_offset("another", 1), delta_offset(str(own), 4), '{"t":{"0":5}}')
    past = past_of(DELTA, at, ReaderSpec(name="r", table=DELTA.name, checkpoint=folder))
    assert past.pins == {"r": 4} and past.problems == ()
    ahead = checkpoint_of(at.home / "ahead", delta_offset(str(own), 6))
    assert past_of(DELTA, at, ReaderSpec(name="r", table=DELTA.id, checkpoint=ahead)).problems == ()
    other = checkpoint_of(at.home / "other", delta_offset("another", 4))
    (problem,) = past_of(DELTA, at, ReaderSpec(name="r", table=DELTA.id, checkpoint=other)).problems
    assert "no Delta table with the id" in problem and "(but another)" in problem


def test_an_iceberg_reader_is_found_by_its_snapshots(at: Places) -> None:
    small_commits(ICEBERG, at, 5)
    ids = [version.version for version in past_of(ICEBERG, at).versions]
    folder = checkpoint_of(at.home / "reader", iceberg_offset(77), iceberg_offset(ids[3]), iceberg_offset(ids[2]))
    past = past_of(ICEBERG, at, ReaderSpec(name="r", table=ICEBERG.id, checkpoint=folder))
    assert past.pins == {"r": ids[3], "r#1": ids[2]} and past.problems == ()
    lost = checkpoint_of(at.home / "lost", iceberg_offset(77))
    (problem,) = past_of(ICEBERG, at, ReaderSpec(name="r", table=ICEBERG.id, checkpoint=lost)).problems
    assert "reader 'r' is at version 77" in problem and "remove it from maintenance.readers" in problem


def test_a_reader_of_another_table_pins_nothing(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 2)
    assert past_of(spec, at, ReaderSpec(name="r", table="shop.others", version=1)).pins == {}
    assert past_of(spec, at, ReaderSpec(name="r", table=spec.id, version=1)).problems != () or spec.format == "delta"


def test_only_finished_batches_count(at: Places) -> None:
    small_commits(DELTA, at, 5)
    own = str(DeltaTable(str(at.delta_path(DELTA))).metadata().id)
    folder = checkpoint_of(at.home / "reader", delta_offset(own, 2), batch=7)
    checkpoint_of(folder, delta_offset(own, 5), batch=8, commits=7)
    assert past_of(DELTA, at, ReaderSpec(name="r", table=DELTA.id, checkpoint=folder)).pins == {"r": 2}


def test_the_log_stays_from_where_a_readers_newest_batch_began_as_far_as_it_is_there(at: Places) -> None:
    small_commits(DELTA, at, 6)
    table = DeltaTable(str(at.delta_path(DELTA)))
    own = str(table.metadata().id)
    folder = checkpoint_of(at.home / "reader", delta_offset(own, 5), batch=8)
    reader = ReaderSpec(name="r", table=DELTA.id, checkpoint=folder)
    assert past_of(DELTA, at, reader).restarts == {"r": 0}, "where it began is not known, so all of the log stays"

    checkpoint_of(folder, delta_offset(own, 2), batch=7)
    assert past_of(DELTA, at, reader).restarts == {"r": 2}

    table.create_checkpoint()
    DeltaEngine(at).clean_log(DELTA, CleanLog(table=DELTA.id, reason="by an earlier release", before_version=table.version()))
    past = past_of(DELTA, at, reader)
    assert past.versions[0].version > 2 and past.restarts == {}, "what is gone cannot be kept"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("gone", "No such file or directory"),
        ("no commits", "No such file or directory"),
        ("no batch", "it has finished no batch yet"),
        ("torn offsets", "files of its batch 3 cannot be read"),
        ("torn commit", "files of its batch 3 cannot be read"),
        ("missing offsets", "No such file or directory"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_said_and_never_ignored(damage: str, reason: str, at: Places) -> None:
    small_commits(DELTA, at, 3)
    folder = checkpoint_of(at.home / "reader", delta_offset(str(DeltaTable(str(at.delta_path(DELTA))).metadata().id), 2))
    if damage == "gone":
        folder = at.home / "nowhere"
    elif damage == "no commits":
        folder = at.home / "empty"
        folder.mkdir()
    elif damage == "no batch":
        (folder / "commits" / "3").unlink()
    elif damage == "missing offsets":
        (folder / "offsets" / "3").unlink()
    else:
        part = folder / ("offsets" if damage == "torn offsets" else "commits") / "3"
        part.write_bytes(part.read_bytes()[:-4])
    past = past_of(DELTA, at, ReaderSpec(name="dashboard", table=DELTA.id, checkpoint=folder))
    assert past.pins == {} and len(past.problems) == 1
    assert reason in past.problems[0] and past.problems[0].startswith("reader 'dashboard':")


# The record of runs


def report(number: int, *steps: tuple[MaintenanceStep, str]) -> RunReport:
    done = tuple(StepReport.model_validate({"step": step, "outcome": outcome}) for step, outcome in steps)
    return RunReport(pipeline="orders", run_id=f"run-{number}", started_at_ms=number, ended_at_ms=number + 1, steps=done)


def compact(day: str = "a", table: str = DELTA.id, order_by: tuple[str, ...] = ()) -> Compact:
    return Compact(table=table, reason="", partition={"day": day}, below_bytes=1, target_file_bytes=1, order_by=order_by)


def vacuum(mode: str, table: str = DELTA.id) -> Vacuum:
    return Vacuum.model_validate({"table": table, "reason": "", "mode": mode, "retention_seconds": 1})


def orphans(table: str = DELTA.id) -> RemoveOrphans:
    return RemoveOrphans(table=table, reason="", mode="dry_run", older_than_ms=1, delete_quarantined_before_ms=1)


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def test_reports_are_kept_in_order_and_a_cut_line_is_passed_over(control: ControlFolder) -> None:
    assert read_runs(control) == []
    record_run(control, report(1, (compact(), "done")))
    with control.maintenance_history.open("a") as file:
        file.write('{"pipeline": "orders", "run_')
    record_run(control, report(2, (vacuum("lite"), "nothing")))
    assert [run.run_id for run in read_runs(control)] == ["run-1", "run-2"]
    assert read_runs(control)[0].steps[0].step == compact()


def test_the_record_stays_small_and_forgets_no_weekly_look(control: ControlFolder) -> None:
    many = ExpireSnapshots(table=ICEBERG.id, reason="", snapshot_ids=tuple(range(10**18, 10**18 + 20_000)))
    record_run(control, report(1, (vacuum("full"), "done"), (orphans(), "nothing")), max_bytes=20_000)
    for number in range(2, 60):
        record_run(control, report(number, (many, "done"), (vacuum("lite"), "done")), max_bytes=20_000)
        assert control.maintenance_history.stat().st_size < 24_000
    kept = read_runs(control)
    assert kept[0].run_id == "run-1" and kept[-1].run_id == "run-59" and 3 < len(kept) < 15
    found = past_run(DELTA.id, kept)
    assert (found.vacuumed_full_at_ms, found.orphans_at_ms, found.vacuumed_at_ms) == (2, 2, 60)


def test_what_earlier_runs_did_to_a_table() -> None:
    runs = [
        report(10, (compact("a"), "done"), (compact("b"), "lost"), (compact("c", order_by=("x",)), "done")),
        report(20, (compact("a"), "nothing"), (compact("b"), "failed"), (compact("c", ICEBERG.id), "done")),
        report(30, (compact("b"), "skipped"), (vacuum("full"), "failed"), (vacuum("lite"), "nothing"), (orphans(), "lost")),
    ]
    found = past_run(DELTA.id, runs)
    assert found.compacted_at_ms == {"day=a": 21, "day=b": 21, "day=c": 11}
    assert found.fruitless == {"day=a": 1, "day=b": 2, "day=c": 0}
    assert found.ordered_at_ms == {"day=c": 11}
    assert (found.vacuumed_at_ms, found.vacuumed_full_at_ms, found.orphans_at_ms) == (31, None, None)
