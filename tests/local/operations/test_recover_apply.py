"""Recovery applied to real tables of both formats: what then stands in tables, control files and incidents."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.support.tables.foreign_hands import forget_entries, take_back
from tests.support.tables.local_tables import PIPELINE, TOPIC, landed_offsets, lander, offsets, rows
from tests.support.tables.recovering import DELTA, ICEBERG, NEW_ID, Case, case_fixture  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.control.applications import living_submission
from lakebound.control.crash_loop import CrashLoop, read_crash_loop, write_crash_loop
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import write_json
from lakebound.control.incidents import read_incidents
from lakebound.control.lease import acquire, lease_is_live, read_lease
from lakebound.errors import BadEntryError, LeaseLostError
from lakebound.ledger.entry import Entry, TopicOffsets, new_commit_id
from lakebound.operations.recovery import apply as applying
from lakebound.operations.recovery import takeover
from lakebound.operations.recovery.apply import LedgerMovedError, plan_recovery
from lakebound.operations.recovery.facts import TornControlFileError
from lakebound.operations.recovery.plan import PlanRefusedError
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.tip import read_tip
from lakebound.tables.table import open_table


def test_accepted_loss_stands_in_the_tables_and_in_the_incident(case: Case) -> None:
    case.kafka.earliest = 45
    approved = case.plan("accept_loss")
    applied = case.apply("accept_loss", approved)
    assert set(applied.committed) == {DELTA.id, ICEBERG.id}
    for table in (DELTA, ICEBERG):
        entry = open_table(table, case.at).read_ledger().entry
        assert entry is not None
        assert (entry.kind, entry.range, entry.coverage) == ("skip", offsets(30, 45), offsets(0, 45))
        case.assert_proved()
        case.land(table, 45, 50)
        assert landed_offsets(open_table(table, case.at)) == [*range(30), *range(45, 50)]
    (incident,) = read_incidents(case.control)
    assert (incident.kind, incident.approved_by, incident.runbook) == ("repair", "ada", "retention-passed")
    assert [(lost.start, lost.end) for lost in incident.loses] == [(30, 45)]
    assert incident.plan is not None
    assert incident.plan["hash"] == approved
    assert incident.outcome.startswith("applied: ")


def test_a_new_incarnation_begins_at_its_beginning_in_every_table(case: Case) -> None:
    case.kafka.topic_id, case.kafka.earliest, case.kafka.latest = NEW_ID, 3, 500
    case.apply("new_incarnation", case.plan("new_incarnation"))
    for table in (DELTA, ICEBERG):
        entry = open_table(table, case.at).read_ledger().entry
        assert entry is not None
        assert entry.kind == "reset"
        assert entry.coverage == {TOPIC: TopicOffsets(topic_id=NEW_ID, partitions={0: ((3, 3),)})}
        assert entry.former == {TOPIC: (offsets(0, 30)[TOPIC],)}
    assert case.kinds(case.spec.quarantine_table) == ["genesis"], "it held nothing of the old one"
    case.assert_proved()


def test_what_a_guest_lands_after_the_plan_was_checked_is_not_taken_out_of_the_ledger(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay needs no lease: it may have been suspended just before its commit."""
    case.kafka.topic_id, case.kafka.earliest, case.kafka.latest = NEW_ID, 3, 500
    plan, check = case.plan("new_incarnation"), applying._objection

    def suspended(*given: Any) -> Any:
        found = check(*given)
        guest = lander(DELTA, case.at)
        guest.epoch = guest.view.epoch
        guest.land(30, 40)
        return found

    monkeypatch.setattr(applying, "_objection", suspended)
    with pytest.raises(LedgerMovedError, match="plan the repair again"):
        case.apply("new_incarnation", plan)
    assert open_table(DELTA, case.at).read_ledger().coverage == offsets(0, 40)
    assert read_desired(case.control).state == "held"
    monkeypatch.setattr(applying, "_objection", check)
    case.apply("new_incarnation", case.plan("new_incarnation"))
    case.assert_proved()


@pytest.mark.parametrize("damaged", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_a_table_without_entries_is_rebased_on_its_rows(case: Case, damaged: TableSpec) -> None:
    forget_entries(damaged, case.at)
    plan = plan_recovery(case.spec, case.settings, "rebase")
    assert "from the column statistics of its files" in plan.steps[0].what
    case.apply("rebase", plan.hash)
    assert open_table(damaged, case.at).read_ledger().coverage == offsets(0, 30)
    assert case.kinds(damaged) == ["reset"]
    assert read_incidents(case.control)[0].runbook == "no-ledger"
    case.assert_proved()
    case.land(damaged, 30, 40)
    assert landed_offsets(open_table(damaged, case.at)) == list(range(40))


@pytest.mark.parametrize("damaged", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_a_table_whose_newest_entry_cannot_be_read_is_rebased_on_its_rows(case: Case, damaged: TableSpec) -> None:
    table = open_table(damaged, case.at)
    view = table.read_ledger()
    assert view.entry is not None
    table.commit([], view.entry.model_copy(update={"kind": "nonsense", "commit": new_commit_id()}))
    with pytest.raises(BadEntryError):
        open_table(damaged, case.at).read_ledger()
    case.apply("rebase", case.plan("rebase"))
    assert open_table(damaged, case.at).read_ledger().coverage == offsets(0, 30)
    case.assert_proved()
    case.land(damaged, 30, 40)
    assert landed_offsets(open_table(damaged, case.at)) == list(range(40))


@pytest.mark.parametrize("damaged", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_a_table_of_which_only_an_older_entry_was_carried_on_is_rebased_on_its_rows(case: Case, damaged: TableSpec) -> None:
    entries = list(open_table(damaged, case.at).entries())
    forget_entries(damaged, case.at)
    table = open_table(damaged, case.at)
    table.read_ledger(to_reset=True)
    table.commit([], entries[1].entry.model_copy(update={"kind": "carry", "commit": new_commit_id()}))
    assert open_table(damaged, case.at).read_ledger().coverage == offsets(0, 20)
    case.apply("rebase", case.plan("rebase"))
    assert open_table(damaged, case.at).read_ledger().coverage == offsets(0, 30)


def test_rows_of_two_incarnations_are_told_apart_without_any_entry(case: Case) -> None:
    case.kafka.topic_id, case.kafka.latest = NEW_ID, 9
    case.apply("new_incarnation", case.plan("new_incarnation"))
    table = open_table(DELTA, case.at)
    view = table.read_ledger()
    again = rows(0, 5).to_pylist()
    for row in again:
        row["_kafka"]["topic_id"] = NEW_ID
    files = write_data_files(rows(0, 5).from_pylist(again, schema=rows(0, 1).schema), table.layout(), "again")
    landed = {TOPIC: TopicOffsets(topic_id=NEW_ID, partitions={0: ((0, 5),)})}
    draft = Entry(kind="land", pipeline=PIPELINE, epoch=50, commit=new_commit_id(), range=landed, read=5, landed=5, rows=5)
    commit_entry(table, view, files, draft, own_epoch=50, check_lease=lambda: None, attempts=1)
    before = table.read_ledger().entry
    forget_entries(DELTA, case.at)
    plan = plan_recovery(case.spec, case.settings, "rebase")
    assert "from a scan of its rows" in plan.steps[0].what
    case.apply("rebase", plan.hash)
    after = open_table(DELTA, case.at).read_ledger().entry
    assert before is not None
    assert after is not None
    assert (after.coverage, after.former) == (before.coverage, before.former)


def test_a_table_that_was_restored_by_hand_is_rebased_on_the_entry_of_that_version(case: Case) -> None:
    version = next(f.version for f in open_table(DELTA, case.at).entries() if f.entry.coverage == offsets(0, 10))
    restored = str(int(open_table(DELTA, case.at).read_ledger().version) + 1)
    for target in (version, "1", restored):  # the last one brings back the first RESTORE: the chain is followed
        take_back(DELTA, case.at, target)
    plan = plan_recovery(case.spec, case.settings, "rebase")
    assert f"from the entry of version {version}" in plan.steps[0].what
    assert (plan.replays_records, len(plan.steps)) == (20, 2)
    case.apply("rebase", plan.hash)
    assert open_table(DELTA, case.at).read_ledger().coverage == offsets(0, 10)
    case.land(DELTA, 10, 40)
    assert landed_offsets(open_table(DELTA, case.at)) == list(range(40))


def test_rows_that_contradict_the_restored_version_are_for_a_person(case: Case) -> None:
    version = next(f.version for f in open_table(DELTA, case.at).entries() if f.entry.coverage == offsets(0, 10))
    take_back(DELTA, case.at, version)
    table = open_table(DELTA, case.at)
    version = table.read_ledger(to_reset=True).version
    files = write_data_files(rows(70, 75), table.layout(), "stranger")
    tip = read_tip(table.layout().folder, int(version), table.spec.id)
    stranger = table._append  # type: ignore[attr-defined]
    stranger(files, Entry(kind="genesis", pipeline=PIPELINE, epoch=0, commit="x"), tip, table._shape)  # type: ignore[attr-defined]
    forget_last_entry(case)
    with pytest.raises(PlanRefusedError, match="5 offsets of its rows are not in the ledger entry"):
        plan_recovery(case.spec, case.settings, "rebase")


def forget_last_entry(case: Case) -> None:
    """Make the newest Delta commit somebody else's."""
    path = sorted((case.at.delta_path(DELTA) / "_delta_log").glob("*.json"))[-1]
    path.write_text(path.read_text().replace("userMetadata", "forgotten"))


class TestDropZombie:
    def test_a_live_holder_is_superseded_and_the_tables_refuse_it(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        zombie = lander(DELTA, case.at, epoch=7)
        zombie.open()
        held = acquire(case.control, "zombie", 30, above_epoch=6)
        far_away = held.model_copy(update={"host": "far-away"})
        write_json(case.control.lease, far_away.model_dump())
        assert living_submission(case.control) is not None
        approved = case.plan("drop_zombie")
        case.apply("drop_zombie", approved)
        lease = read_lease(case.control)
        assert lease is not None
        assert (lease.epoch, lease.released, lease.app_id != "zombie") == (8, True, True)
        with pytest.raises(LeaseLostError):
            zombie.land(30, 40)
        for table in (*case.spec.tables, case.spec.quarantine_table):
            assert open_table(table, case.at).read_ledger().epoch == 8
        with pytest.raises(PlanRefusedError, match="nothing to do"):
            case.apply("drop_zombie", approved)


class TestResume:
    def test_a_hold_is_ended_and_the_tables_are_left_alone(self, case: Case) -> None:
        change_desired(case.control, "held", freshness="5s", reason="audit", by="bob")
        write_crash_loop(case.control, CrashLoop(ends=("a", "b", "c"), at=time.time() - 1))
        applied = case.apply("resume", case.plan("resume"))
        desired = read_desired(case.control)
        assert (desired.state, desired.freshness, desired.by) == ("running", "5s", "ada")
        assert read_crash_loop(case.control).since(desired.since) == CrashLoop()
        assert applied.committed == {}
        assert applied.incident.outcome == "applied: no table was written"

    def test_a_crash_loop_starts_anew(self, case: Case) -> None:
        write_crash_loop(case.control, CrashLoop(ends=("a", "b", "c"), at=time.time()))
        case.apply("resume", case.plan("resume"))
        with pytest.raises(PlanRefusedError, match="nothing to do"):
            case.plan("resume")


def test_torn_control_files_are_a_sentence_or_do_no_harm(case: Case) -> None:
    case.kafka.earliest = 45
    case.control.folder.mkdir(parents=True, exist_ok=True)
    case.control.lease.write_text('{"epoch": 1')
    case.control.progress.write_text("")
    case.apply("accept_loss", case.plan("accept_loss"))
    case.control.desired.write_text('{"state": "ru')
    with pytest.raises(TornControlFileError, match="runbook control-files"):
        case.plan("resume")


def test_the_lease_of_a_repair_outlives_its_time_to_live(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look() -> None:
        lease = read_lease(case.control)
        assert lease is not None
        seen.append(lease)

    with takeover.taken_over(case.spec, case.at, by="ada", reason="test") as lease:
        wait_until(lambda: time.time() >= lease.acquired_at + 2.5, 10, "the end of the lease's time to live")
        look()
    assert lease_is_live(case.control, seen[0], time.time())
    assert json.loads(case.control.desired.read_text())["state"] == "running"
