"""Recovery applied to real tables, with a Kafka of the test's own words: once, only as approved, and recorded."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.foreign_hands import forget_entries, take_back
from tests.local_tables import PIPELINE, TOPIC, TOPIC_ID, landed_offsets, lander, make_table, offsets, rows

from lakebound.commit import commit_entry
from lakebound.control import ControlFolder, write_json
from lakebound.control_plane import living_submission
from lakebound.crash_loop import CrashLoop, read_crash_loop, write_crash_loop
from lakebound.desired import Desired, change_desired, read_desired
from lakebound.embedded.processes import wait_until
from lakebound.errors import BadEntryError, BrokerUnavailableError, LakeboundError, LeaseLostError, MissingTopicError
from lakebound.incidents import read_incidents
from lakebound.kafka import TopicFacts
from lakebound.lease import acquire, read_lease
from lakebound.ledger import Entry, TopicOffsets, new_commit_id
from lakebound.prove import prove
from lakebound.recovery import apply as applying
from lakebound.recovery import facts as collecting
from lakebound.recovery import takeover
from lakebound.recovery.apply import apply_recovery, plan_recovery
from lakebound.recovery.facts import TornControlFileError
from lakebound.recovery.plan import Action, PlanChangedError, PlanRefusedError
from lakebound.run_spec import Places, places_of
from lakebound.settings import Settings, load_settings
from lakebound.spec import PipelineSpec, TableSpec
from lakebound.tables import open_table
from lakebound.tables.datafiles import write_data_files

DELTA, ICEBERG = TableSpec(format="delta", name="shop.orders"), TableSpec(format="iceberg", name="shop.orders")
NEW_ID = "topic-id-2"


@dataclass
class FakeKafka:
    """What the broker is to answer."""

    topic_id: str = TOPIC_ID
    earliest: int = 0
    latest: int = 100
    error: LakeboundError | None = None
    asked: list[float] = field(default_factory=list)

    def topics(self, names: Iterable[str], **_: Any) -> dict[str, TopicFacts]:
        """Answer."""
        self.asked.append(time.monotonic())
        if self.error is not None:
            raise self.error
        return {name: TopicFacts(self.topic_id, {0: self.earliest}, {0: self.latest}) for name in names}


@dataclass
class Case:
    """A pipeline with two tables and a quarantine, of which [0, 30) is landed in three commits."""

    spec: PipelineSpec
    settings: Settings
    kafka: FakeKafka

    @property
    def at(self) -> Places:
        return places_of(self.settings)

    @property
    def control(self) -> ControlFolder:
        return ControlFolder(self.settings.home, PIPELINE)

    def plan(self, action: Action) -> str:
        """Return the hash of the plan."""
        return plan_recovery(self.spec, self.settings, action).hash

    def apply(self, action: Action, approved: str) -> applying.Applied:
        """Apply a plan."""
        return apply_recovery(self.spec, self.settings, action, approved, by="ada")

    def land(self, table: TableSpec, start: int, end: int) -> None:
        """Land an interval as the next application does."""
        app = lander(table, self.at, epoch=99)
        app.land(start, end)

    def assert_proved(self) -> None:
        """Check that the proof by entries holds as the tables are now."""
        proof = prove(self.spec, self.at, facts=self.kafka)  # type: ignore[arg-type]
        assert proof.ok, [table.problems for table in proof.tables]

    def kinds(self, table: TableSpec) -> list[str]:
        """Return the kinds of the table's entries, newest first."""
        return [found.entry.kind for found in open_table(table, self.at).entries()]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path))
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(tmp_path / "lake"))
    kafka = FakeKafka()
    monkeypatch.setattr(collecting, "KafkaFacts", lambda *_, **__: kafka)
    spec = PipelineSpec.model_validate(
        {
            "pipeline": PIPELINE,
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [DELTA, ICEBERG],
            "limits": {"lease_ttl_seconds": 2},
        }
    )
    made = Case(spec, load_settings(), kafka)
    for table in (*spec.tables, spec.quarantine_table):
        make_table(table, made.at)
    for table in spec.tables:
        app = lander(table, made.at)
        app.open()
        for start in (0, 10, 20):
            app.land(start, start + 10)
    yield made
    assert read_lease(made.control) is None or read_lease(made.control).released  # type: ignore[union-attr]


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


@pytest.mark.parametrize("damaged", [DELTA, ICEBERG], ids=["delta", "iceberg"])
def test_a_table_without_entries_is_rebased_on_its_rows(case: Case, damaged: TableSpec) -> None:
    forget_entries(damaged, case.at)
    plan = plan_recovery(case.spec, case.settings, "rebase")
    assert "by its files' column statistics" in plan.steps[0].what
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
    files = write_data_files(rows(0, 5).from_pylist(again, schema=rows(0, 1).schema), table.data_folder(), DELTA, "again")
    landed = {TOPIC: TopicOffsets(topic_id=NEW_ID, partitions={0: ((0, 5),)})}
    draft = Entry(kind="land", pipeline=PIPELINE, epoch=50, commit=new_commit_id(), range=landed, read=5, landed=5, rows=5)
    commit_entry(table, view, files, draft, own_epoch=50, check_lease=lambda: None, attempts=1)
    before = table.read_ledger().entry
    forget_entries(DELTA, case.at)
    plan = plan_recovery(case.spec, case.settings, "rebase")
    assert "by a scan of its rows" in plan.steps[0].what
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
    assert f"by the entry of version {version}" in plan.steps[0].what
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
    files = write_data_files(rows(70, 75), table.data_folder(), DELTA, "stranger")
    stranger = table._append  # type: ignore[attr-defined]
    stranger(files, Entry(kind="genesis", pipeline=PIPELINE, epoch=0, commit="x"), int(version) + 1)
    forget_last_entry(case)
    with pytest.raises(PlanRefusedError, match="5 offsets of its rows are not in the entry"):
        plan_recovery(case.spec, case.settings, "rebase")


def forget_last_entry(case: Case) -> None:
    """Make the newest Delta commit somebody else's."""
    path = sorted((case.at.delta_path(DELTA) / "_delta_log").glob("*.json"))[-1]
    path.write_text(path.read_text().replace("userMetadata", "forgotten"))


class TestOnlyAsApproved:
    def test_changed_facts_apply_nothing(self, case: Case) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        case.kafka.earliest = 46
        with pytest.raises(PlanChangedError, match="nothing was applied"):
            case.apply("accept_loss", approved)
        self._untouched(case)

    def test_facts_that_change_while_the_pipeline_is_taken_over_apply_nothing(
        self, case: Case, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        end = takeover.end_application

        def meanwhile(*arguments: Any, **options: Any) -> None:
            case.kafka.earliest = 60
            end(*arguments, **options)

        monkeypatch.setattr(takeover, "end_application", meanwhile)
        with pytest.raises(PlanChangedError):
            case.apply("accept_loss", approved)
        self._untouched(case)

    def test_a_hash_of_another_action_applies_nothing(self, case: Case) -> None:
        case.kafka.earliest = 45
        with pytest.raises(PlanRefusedError):
            case.apply("new_incarnation", case.plan("accept_loss"))
        with pytest.raises(PlanChangedError):
            case.apply("accept_loss", "0123456789ab")
        self._untouched(case)

    def test_applied_twice_the_second_time_does_nothing(self, case: Case) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        case.apply("accept_loss", approved)
        kinds = case.kinds(DELTA)
        with pytest.raises(PlanRefusedError, match="nothing to do"):
            case.apply("accept_loss", approved)
        assert case.kinds(DELTA) == kinds
        assert len(read_incidents(case.control)) == 1

    def test_applied_twice_at_once_one_of_them_does_it(self, case: Case) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        together = threading.Barrier(2)

        def apply(_: int) -> str:
            together.wait(10)
            try:
                case.apply("accept_loss", approved)
            except PlanRefusedError:
                return "refused"
            return "applied"

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(apply, range(2))) == ["applied", "refused"]
        for table in (DELTA, ICEBERG):
            assert case.kinds(table).count("skip") == 1
        assert read_desired(case.control).state == "running"

    @pytest.mark.parametrize("error", [BrokerUnavailableError("b", "silence"), MissingTopicError(TOPIC, "b")])
    def test_a_broker_that_does_not_tell_gives_no_plan(self, case: Case, error: LakeboundError) -> None:
        case.kafka.error = error
        with pytest.raises(PlanRefusedError):
            case.plan("accept_loss")

    def _untouched(self, case: Case) -> None:
        for table in (DELTA, ICEBERG):
            assert case.kinds(table) == ["land"] * 3 + ["open", "genesis"]
        assert read_desired(case.control) == Desired() or read_desired(case.control).state == "running"
        assert read_incidents(case.control) == []


class TestCutShort:
    def test_what_is_left_is_the_next_plan(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        case.kafka.earliest = 45
        approved = case.plan("accept_loss")
        commit = applying.commit_entry

        def fail_at_iceberg(table: Any, *arguments: Any, **options: Any) -> Any:
            if table.spec == ICEBERG:
                raise OSError("catalog away")
            return commit(table, *arguments, **options)

        with monkeypatch.context() as patched:
            patched.setattr(applying, "commit_entry", fail_at_iceberg)
            with pytest.raises(OSError, match="catalog away"):
                case.apply("accept_loss", approved)
        assert read_desired(case.control).state == "held", "nothing runs before somebody has looked"
        (incident,) = read_incidents(case.control)
        assert incident.outcome.startswith("cut short after {'delta:shop.orders'")
        with pytest.raises(PlanChangedError):
            case.apply("accept_loss", approved)
        rest = plan_recovery(case.spec, case.settings, "accept_loss")
        assert [step.table for step in rest.steps if step.table] == [ICEBERG.id]
        case.apply("accept_loss", rest.hash)
        assert read_desired(case.control).state == "running"
        assert open_table(ICEBERG, case.at).read_ledger().coverage == offsets(0, 45)

    def test_a_commit_that_answers_with_an_error_stands_once(self, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
        case.kafka.topic_id = NEW_ID
        opened = open_table

        def unsure(spec: TableSpec, at: Places) -> Any:
            table = opened(spec, at)
            commit = table.commit

            def commit_then_fail(files: Any, entry: Entry) -> str:
                commit(files, entry)
                raise OSError("connection reset")

            table.commit = commit_then_fail  # type: ignore[method-assign]
            return table

        monkeypatch.setattr(applying, "open_table", unsure)
        case.apply("new_incarnation", case.plan("new_incarnation"))
        for table in (DELTA, ICEBERG):
            assert case.kinds(table).count("reset") == 1


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
    assert seen[0].is_live(time.time())
    assert json.loads(case.control.desired.read_text())["state"] == "running"
