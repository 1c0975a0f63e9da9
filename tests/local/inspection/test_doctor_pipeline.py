"""Facts from real tables and folders, numbers, the bound on starts, and what a start writes down."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.tables.local_tables import TOPIC_ID, Lander, lander, make_table, offsets, places

from lakebound.control import situations
from lakebound.control.crash_loop import CrashLoop, count_last_end, read_crash_loop, write_crash_loop
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.incidents import read_incidents, record_refusal
from lakebound.control.last_end import LastEnd, read_last_end
from lakebound.control.lease import Lease
from lakebound.control.progress import Outcome, Progress, TableProgress
from lakebound.control.runbooks import RUNBOOKS
from lakebound.control.start_incident import start_incident
from lakebound.errors import LedgerBehindError, error_named
from lakebound.inspection.doctor.pipeline.collect import read_state
from lakebound.inspection.doctor.pipeline.facts import KafkaLook, LedgerFacts, PipelineFacts, TopicRetention, Waiting
from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.inspection.doctor.pipeline.numbers import numbers_of
from lakebound.inspection.doctor.pipeline.rules import RULES, diagnose
from lakebound.ledger.entry import Entry
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.backfill.tables import owned_table
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.stale_ledger import check_not_behind, read_not_behind
from lakebound.tables.table import Table, open_table

NOW = 1_800_000_000.0
BODY = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:1"},
    "value": {"format": "bytes"},
    "freshness": "500ms",
    "tables": [{"format": "delta", "name": "lake.orders"}, {"format": "iceberg", "name": "lake.orders"}],
}
SPEC = PipelineSpec.model_validate(BODY)


# --- facts of real tables ----------------------------------------------------------------------------------------


def hashes(*roots: Path) -> dict[str, str]:
    """Return every file's hash; what SQLite itself needs to read (index, empty log) is left out."""
    files = [path for root in roots for path in root.rglob("*") if path.is_file() and not path.name.endswith("-shm")]
    kept = [path for path in files if path.stat().st_size or not path.name.endswith("-wal")]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def test_looking_at_what_was_never_made_makes_nothing(tmp_path: Path) -> None:
    found = read_ledgers(SPEC, places(tmp_path))
    assert [(table.role, table.state) for table in found] == [
        ("target", "absent"),
        ("target", "absent"),
        ("quarantine", "absent"),
    ]
    assert list(tmp_path.rglob("*")) == []


def test_tables_are_read_and_not_touched_not_even_the_log_of_a_writer_that_was_killed(tmp_path: Path) -> None:
    script = f"""
import os, pathlib
from tests.support.tables.local_tables import *
from lakebound.spec.pipeline import TableSpec
at = places(pathlib.Path({str(tmp_path)!r}))
for name in ("delta", "iceberg"):
    spec = TableSpec(format=name, name="lake.orders")
    make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 20)
    app.epoch = 3
    app.open()
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", script], check=False, cwd=Path(__file__).parents[3])
    assert (tmp_path / "lake/iceberg/catalog.db-wal").stat().st_size, "the writer left nothing behind"
    before = hashes(tmp_path)
    reading = "from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers\n"
    reading += "from tests.local.inspection.test_doctor_pipeline import *\n"
    reading += f"print([table.state for table in read_ledgers(SPEC, places(Path({str(tmp_path)!r})))])"
    ended = subprocess.run(
        [sys.executable, "-c", reading], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3]
    )
    assert ended.stdout.strip() == "['entry', 'entry', 'absent']"
    assert hashes(tmp_path) == before

    delta, iceberg, _ = read_ledgers(SPEC, places(tmp_path))
    for table in (delta, iceberg):
        assert table.entry is not None
        assert (table.entry.kind, table.entry.epoch, table.coverage) == ("open", 3, offsets(0, 20))
        assert table.committed_at_ms is not None, "the newest commit with rows is older than the open entry"
    assert (delta.txn_epoch, iceberg.txn_epoch) == (3, None)


def carried_on(at: Places, up_to: int) -> Lander:
    """A table with the offsets up to 20, of whose entries all are gone but one that maintenance has carried on."""
    spec = SPEC.tables[0]
    table = make_table(spec, at)
    app = lander(spec, at)
    app.land(0, 10)
    app.land(10, 20)
    carried = Entry(kind="carry", pipeline="orders", epoch=1, commit="c", coverage=offsets(0, up_to))
    table.read_ledger()
    newest = int(table.commit([], carried))
    handle = DeltaTable(str(at.delta_path(spec)))
    handle.create_checkpoint()
    for version in range(newest):  # what log clean-up does
        (at.delta_path(spec) / "_delta_log" / f"{version:020d}.json").unlink()
    return app


def test_an_entry_that_was_carried_on_past_rows_is_seen_and_refused(tmp_path: Path) -> None:
    at, spec = places(tmp_path), SPEC.tables[0]
    carried_on(at, 10)
    (facts_of_it, *_) = read_ledgers(SPEC, at)
    assert facts_of_it.beyond_ledger == offsets(10, 20)
    again = open_table(spec, at)
    with pytest.raises(LedgerBehindError, match="rows of 10 offsets"):
        check_not_behind(again, again.read_ledger(), at)
    with pytest.raises(LedgerBehindError, match="rows of 10 offsets"):
        owned_table(SPEC, spec, at)


def test_a_batch_that_lands_while_a_guest_looks_is_no_older_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at, spec = places(tmp_path), SPEC.tables[0]
    app = carried_on(at, 20)
    app.view = app.table.read_ledger()
    reconstruct, landed = type(app.table).reconstruct, list[int]()

    def landing(self: Table) -> Any:
        if not landed:
            landed.append(1)
            app.land(20, 30)
        return reconstruct(self)

    monkeypatch.setattr(type(app.table), "reconstruct", landing)
    assert read_not_behind(open_table(spec, at), at).coverage == offsets(0, 30) and landed


def test_a_table_that_raises_is_a_fact(tmp_path: Path) -> None:
    at = places(tmp_path)
    spec = SPEC.tables[0]
    make_table(spec, at)
    lander(spec, at).land(0, 5)
    log = at.delta_path(spec) / "_delta_log"
    (log / f"{1:020d}.json").write_text('{"commitInfo": {"userMetadata"')
    (table, *_) = read_ledgers(SPEC, at)
    assert (table.state, bool(table.problem)) == ("unreadable", True)


def test_a_state_folder_that_is_garbage_raises_nothing(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    for path in (control.lease, control.desired, control.progress, control.submission, control.crash_loop):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff\x00[]")
    found = read_state(SPEC, control, (), NOW)
    assert set(found.unreadable) == {"lease", "desired state", "submission", "progress"}
    assert diagnose(found).verdict == "needs_person"


# --- numbers -----------------------------------------------------------------------------------------------------


def table_at(mark: int, **changes: Any) -> LedgerFacts:
    entry = Entry(kind="land", pipeline="orders", epoch=1, commit="c", coverage=offsets(0, mark))
    return replace(LedgerFacts("delta:lake.orders", "target", "entry", entry=entry), **changes)


def facts(*tables: LedgerFacts, **changes: Any) -> PipelineFacts:
    look = KafkaLook(topics={"orders": TopicFacts(TOPIC_ID, {0: 40}, {0: 500})}, **changes.pop("look", {}))
    return PipelineFacts(spec=SPEC, now=NOW, tables=tables, kafka=look, **changes)


def test_time_to_data_loss_is_the_least_of_age_and_size() -> None:
    waiting = {("orders", 0): Waiting(int((NOW - 3600) * 1000), per_second=2.0)}
    by_age = facts(table_at(100), look={"waiting": waiting, "retention": {"orders": TopicRetention(milliseconds=7_200_000)}})
    assert numbers_of(by_age)["seconds_to_data_loss"] == 3600
    assert numbers_of(by_age)["lag_seconds"] == 3600
    both = {"waiting": waiting, "retention": {"orders": TopicRetention(7_200_000, 1 << 30)}}
    assert numbers_of(facts(table_at(100), look=both))["seconds_to_data_loss"] == (100 - 40) / 2.0
    assert numbers_of(facts(table_at(500), look={"waiting": {}}))["seconds_to_data_loss"] is None, "nothing waits"
    forever = {"waiting": waiting, "retention": {"orders": TopicRetention()}}
    assert numbers_of(facts(table_at(100), look=forever))["seconds_to_data_loss"] is None, "nothing is ever deleted"


def test_lag_counts_from_the_lowest_mark_and_debt_up_to_the_highest() -> None:
    progress = Progress(pipeline="orders", app_id="a", started_at=0, updated_at=0, high_water_marks={"orders": {0: 150}})
    found = numbers_of(facts(table_at(100), replace(table_at(120), table="iceberg:lake.orders"), progress=progress))
    assert (found["lag_records"], found["recovery_debt_records"]) == (400, 50)


def test_clocks_are_compared_where_they_can_be_seen() -> None:
    lease = lease_of("a", heartbeat_at=NOW - 1)
    seen = facts(table_at(100), lease=lease, lease_live=True, lease_written_at=NOW - 21)
    assert numbers_of(seen)["clock_difference_seconds"] == 20
    ahead = facts(table_at(100, committed_at_ms=int((NOW + 60) * 1000)), lease=lease)
    assert numbers_of(ahead)["clock_difference_seconds"] == 60
    assert numbers_of(facts())["clock_difference_seconds"] is None


def test_retention_that_is_near_warns_while_the_stream_lands_and_asks_when_nothing_does() -> None:
    waiting = {("orders", 0): Waiting(int((NOW - 3500) * 1000))}
    near = {"waiting": waiting, "retention": {"orders": TopicRetention(milliseconds=3_600_000)}}
    landing = facts(table_at(100, committed_at_ms=int((NOW - 1) * 1000)), look=near, living="a")
    (warned,) = [f for f in diagnose(landing).findings if f.rule == "data-loss-near"]
    assert warned.verdict == "healthy"
    assert diagnose(facts(table_at(100), look=near)).verdict == "needs_person"
    far = {**near, "retention": {"orders": TopicRetention(milliseconds=36_000_000)}}
    assert "data-loss-near" not in {f.rule for f in diagnose(facts(table_at(100), look=far)).findings}


# --- the bound on starts -----------------------------------------------------------------------------------------


def lease_of(app_id: str, **changes: Any) -> Lease:
    body = {"epoch": 4, "app_id": app_id, "host": "h", "pid": 1, "pid_started_at": 0, "acquired_at": NOW - 30}
    return Lease.model_validate({**body, "heartbeat_at": NOW - 20, "ttl_seconds": 30, **changes})


def died(app_id: str, *, rows: int = 0, **lease: Any) -> LastEnd:
    table = {"delta:lake.orders": TableProgress(version="1", committed_at=NOW, rows=rows)}
    progress = Progress(pipeline="orders", app_id=app_id, started_at=NOW - 30, updated_at=NOW, tables=table)
    return LastEnd(lease_of(app_id, **lease), progress=progress)


OUTAGES: list[tuple[str, dict[str, Any]]] = [
    ("b", {"error_class": "BrokerUnavailableError"}),
    ("c", {"error_class": "OSError", "passes": True}),
    ("d", {"error_class": "TableUnreadableError", "passes": True}),
]


def ended(app_id: str, verdict: str, commits: int = 0, **changes: Any) -> LastEnd:
    outcome = {"app_id": app_id, "verdict": verdict, "reason": "r", "commits": commits, "started_at": NOW - 30, "ended_at": NOW}
    outcome |= changes
    return LastEnd(lease_of(app_id, released=True), Outcome.model_validate(outcome))


def test_only_starts_that_ended_soon_and_landed_nothing_count_each_once_until_somebody_asks() -> None:
    loop = CrashLoop()
    for number, last in enumerate((died("a"), ended("b", "failed"), died("b"), ended("c", "refused"), died("d"))):
        loop = count_last_end(loop, last, changed_at=0.0)
        assert not loop.is_over_limit(3) or number == 4
    assert loop.ends == ("a", "b", "d")
    assert count_last_end(loop, None, changed_at=NOW + 1).ends == ()
    for other in (died("e", rows=3), ended("e", "failed", commits=1), ended("e", "stopped"), died("e", released=True)):
        assert count_last_end(loop, other, changed_at=0.0).ends == (), other.described
    by_ledger = replace(died("e"), landed_epoch=4)
    assert count_last_end(loop, by_ledger, changed_at=0.0).ends == (), "it died before it could say that it had landed"
    waited = died("e", acquired_at=NOW - 1000)
    assert count_last_end(loop, waited, changed_at=0.0).ends == (), "it lived for long"


def test_an_outage_leaves_the_count_as_it_is_and_makes_a_pause_that_a_request_ends() -> None:
    loop = count_last_end(CrashLoop(), died("a"), changed_at=0.0)
    for number, (app_id, changes) in enumerate(OUTAGES, start=1):
        outage = ended(app_id, "failed", **changes)
        loop = count_last_end(loop, outage, changed_at=0.0)
        assert count_last_end(loop, outage, changed_at=0.0) == loop, "each end once"
        assert (loop.ends, loop.outages.count) == (("a",), number)
    assert loop.not_before(15.0) == NOW + 60
    assert situations.start_awaited("orders", loop, 3, loop.not_before(15.0)).name == "outage"
    assert loop.since(NOW + 1) == CrashLoop()
    kept = loop.since(NOW - 10)
    assert (kept.ends, kept.outages.count) == ((), len(OUTAGES)), "a request before the last outage ends what it could know of"
    assert count_last_end(loop, died("z"), changed_at=0.0).ends == ("a", "z")
    lasting = ended("e", "failed", error_class="BrokerUnavailableError", passes=False)
    assert count_last_end(loop, lasting, changed_at=0.0).ends == ("a", "e"), "what the application said itself"


def test_the_count_survives_in_a_file_and_a_torn_one_counts_nothing(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    write_crash_loop(control, CrashLoop())
    assert not control.crash_loop.exists(), "nothing to say"
    write_crash_loop(control, CrashLoop(ends=("a",), at=1.0, reason="r"))
    assert read_crash_loop(control).ends == ("a",)
    control.crash_loop.write_text("[]")
    assert read_crash_loop(control) == CrashLoop()


def test_the_last_end_is_read_from_what_was_left(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    assert read_last_end(control) is None
    write_json(control.lease, lease_of("a").model_dump())
    control.progress.write_text("torn")
    found = read_last_end(control)
    assert found is not None
    assert (found.is_unclean, found.landed, found.progress) == (True, False, None)


# --- incidents ---------------------------------------------------------------------------------------------------


def test_a_start_after_an_unclean_end_says_what_is_read_again_and_what_is_trimmed() -> None:
    last = died("a", rows=1)
    assert last.progress is not None
    last = replace(last, progress=last.progress.model_copy(update={"high_water_marks": {"orders": {0: 130}}}))
    coverages = {"delta:lake.orders": offsets(0, 120), "iceberg:lake.orders": offsets(0, 100)}
    found = start_incident(last, coverages, {"orders": {0: 100}})
    resent = start_incident(last, coverages, {"orders": {0: 100}}, ["topic:sent"])
    assert resent.what == f"{found.what}; rows that were sent in real time after the newest entry are sent again to topic:sent"
    assert (found.facts["replayed"], found.facts["trimmed"]) == (30, {"delta:lake.orders": 20, "iceberg:lake.orders": 0})
    assert "a died without an outcome" in found.what
    assert "at least 30 offsets" in found.what


def test_a_refusal_is_recorded_once_with_its_runbook(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    refused = ended("a", "refused").outcome
    assert refused is not None
    first = refused.model_copy(update={"error_class": "TopicRecreatedError"})
    assert record_refusal(control, first) is not None
    assert record_refusal(control, first) is None
    (incident,) = read_incidents(control)
    assert (incident.kind, incident.runbook) == ("refused", "topic-recreated")
    looping = refused.model_copy(update={"error_class": "CrashLoopError", "reason": "again"})
    written = record_refusal(control, looping)
    assert written is not None
    assert written.kind == "crash_loop"


def test_every_refusal_has_a_page_of_the_list() -> None:
    errors = [error_named(name) for name in ("BadEntryError", "CrashLoopError", "TableMismatchError", "KeyError", None)]
    assert [error.runbook for error in errors] == ["bad-entry", "crash-loop", "refused", "refused", "refused"]
    assert {error.runbook for error in errors} <= set(RUNBOOKS)
    assert len({rule.__name__ for rule in RULES}) == len(RULES)


# --- what is easily got wrong ------------------------------------------------------------------------------------


def test_offsets_of_another_incarnation_are_compared_with_nothing() -> None:
    recreated = replace(facts(table_at(100)), kafka=KafkaLook(topics={"orders": TopicFacts("id-2", {0: 300}, {0: 500})}))
    rules = {finding.rule for finding in diagnose(recreated).findings}
    assert "topic-recreated" in rules
    assert not rules & {"retention-passed", "offsets-beyond-end", "interior-gap", "unseen-partition-cut"}
    assert numbers_of(recreated)["lag_records"] is None


def test_a_pipeline_on_a_schedule_rests_between_its_runs() -> None:
    nightly = PipelineSpec.model_validate({**BODY, "freshness": "available_now"})
    resting = replace(facts(table_at(500)), spec=nightly, lease=lease_of("a", released=True))
    resting = replace(resting, last_end=ended("a", "completed"))
    assert diagnose(resting).verdict == "healthy"
    assert diagnose(replace(resting, last_end=died("a"))).verdict == "repairable"
