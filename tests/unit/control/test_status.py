"""The status of pipelines, from every combination of state that a person can meet."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import yaml
from tests.support.streams.stand_ins import ORDERS

from lakebound.control.desired import Desired, change_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Outcome, Progress, write_outcome, write_progress
from lakebound.control.recent_ledger import LandedBatch, RecentLedger, TableCommit, write_recent_ledger
from lakebound.control.schemas_in_use import SchemasInUse, SchemasRecord, write_schemas_in_use
from lakebound.control.status import StatusFacts, pipeline_statuses, read_facts, status_of
from lakebound.control.submission import Submission, write_submission
from lakebound.control.unknown_fields import record_after
from lakebound.control.windows_in_use import WindowsProgress, told_windows
from lakebound.settings import Settings, load_settings
from lakebound.spec.draft.unknown_fields import UnknownField
from lakebound.spec.pipeline import PipelineSpec

NOW = 1_000_000.0
SPEC = PipelineSpec.model_validate(ORDERS)
APP = Submission(app_id="orders-g0-1", submitted_at=NOW - 100, log=Path("/logs/orders.log"), source_hash="new")
PROGRESS = Progress(
    pipeline="orders",
    app_id="orders-g0-1",
    epoch=7,
    source_hash="new",
    state="running",
    started_at=NOW - 90,
    updated_at=NOW - 1,
    records=500,
    high_water_marks={"orders": {0: 40, 1: 60}},
    lag_records=3,
    newest_record_ms=int((NOW - 2.4) * 1000),
    last_commit_at=NOW - 2.0,
    spark_ui="http://127.0.0.1:4040",
)
RUNNING = StatusFacts("orders", SPEC, "new", Desired(), living=APP, last=APP, progress=PROGRESS)


def outcome(verdict: str, reason: str) -> Outcome:
    return Outcome.model_validate(
        {"app_id": APP.app_id, "verdict": verdict, "reason": reason, "started_at": NOW - 90, "ended_at": NOW - 5}
    )


def test_a_running_pipeline() -> None:
    status = status_of(RUNNING, NOW)
    assert (status.desired, status.app, status.alive, status.epoch, status.outdated) == ("running", "running", True, 7, False)
    assert status.lag_records == 3 and status.records == 500
    assert status.freshness_seconds == pytest.approx(0.4)
    assert status.last_commit_age_seconds == pytest.approx(2.0)
    assert status.high_water_marks == {"orders": {0: 40, 1: 60}}
    assert status.spark_ui == "http://127.0.0.1:4040"
    assert status.notes == ()


def test_a_start_that_rebuilds_open_windows_says_so() -> None:
    [told] = told_windows(WindowsProgress(watermark_ms=7, newest_ms=9, rebuilt_offsets=1234, is_rebuilding=True))
    assert told.startswith("windows: 1,234 offsets are read again to rebuild")


def test_open_windows_are_told_while_an_application_runs() -> None:
    windows = WindowsProgress(
        watermark_ms=60_000, newest_ms=70_000, open_rows=1200, state_bytes=3 << 20, horizon={0: 7, 1: 9}, rebuilt_offsets=84
    )
    running = replace(RUNNING, progress=PROGRESS.model_copy(update={"windows": windows}))
    status = status_of(running, NOW)
    assert status.windows == windows
    assert [part in " ".join(status.notes) for part in ("00:01:00", "1,200 rows", "3 MiB", "84 offsets", "0: 7, 1: 9")] == [
        True
    ] * 5
    assert status_of(replace(running, living=None), NOW).notes == status_of(replace(RUNNING, living=None), NOW).notes
    unread = running.progress.model_copy(update={"windows": WindowsProgress(watermark_ms=0)}) if running.progress else None
    assert "no record" in status_of(replace(running, progress=unread), NOW).notes[-1]


def test_the_lag_counts_what_was_landed_since_the_application_looked_at_kafka() -> None:
    looked = PROGRESS.model_copy(update={"latest_offsets": {"orders": {0: 45, 1: 55}}, "lag_records": 99})
    assert status_of(replace(RUNNING, progress=looked), NOW).lag_records == 5


def test_the_last_commit_is_known_after_a_restart_too(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    settings = replace(load_settings(), home=tmp_path)
    write_progress(control, PROGRESS.model_copy(update={"last_commit_at": None}))
    assert read_facts("orders", SPEC, settings).landed_at is None
    batch = LandedBatch(
        at=NOW - 300, epoch=6, batch=1, ranges={}, partitions=1, tables={"delta:lake.orders": TableCommit("7", 5)}
    )
    later = replace(batch, at=NOW - 200, batch=2, tables={})
    write_recent_ledger(control, RecentLedger(NOW - 290, {}, (batch, later)))
    facts = read_facts("orders", SPEC, settings)
    assert facts.landed_at == NOW - 300, "a batch without rows is no commit to a table"
    assert status_of(facts, NOW).last_commit_age_seconds == pytest.approx(300)
    write_progress(control, PROGRESS)
    assert status_of(read_facts("orders", SPEC, settings), NOW).last_commit_age_seconds == pytest.approx(2)


@pytest.mark.parametrize(
    ("changes", "is_idle"),
    [
        ({}, True),
        ({"latest_offsets": {"orders": {0: 41, 1: 60}}}, False),
        ({"last_commit_at": NOW - 30}, False),
        ({"last_commit_at": None, "started_at": NOW - 30}, False),
        ({"latest_offsets": {}, "lag_records": None}, False),
        ({"updated_at": NOW - 60}, False),
        ({"state": "waiting"}, False),
    ],
)
def test_a_pipeline_that_has_landed_all_and_gets_nothing_is_idle(changes: dict[str, object], is_idle: bool) -> None:
    idle = {
        "last_commit_at": NOW - 300,
        "newest_record_ms": int((NOW - 800) * 1000),
        "latest_offsets": {"orders": {0: 40, 1: 60}},
    }
    progress = PROGRESS.model_copy(update={**idle, **changes})
    assert status_of(replace(RUNNING, progress=progress), NOW).is_idle is is_idle
    assert not status_of(replace(RUNNING, progress=progress, living=None), NOW).is_idle


def test_a_changed_source_shows_as_outdated() -> None:
    status = status_of(replace(RUNNING, source_hash="newer"), NOW)
    assert status.outdated and "lakebound check orders" in status.notes[0]
    assert not status_of(replace(RUNNING, source_hash="newer", living=None), NOW).outdated


def test_a_field_that_the_schema_does_not_name_is_told_until_the_yaml_does() -> None:
    def notes(schema: str, **value: object) -> tuple[str, ...]:
        spec = PipelineSpec.model_validate({**ORDERS, "value": {"format": "json", "schema": schema, **value}})
        record = record_after(None, [UnknownField("discount", "DOUBLE")], read=9, sign="any", now=NOW - 60)
        return status_of(replace(RUNNING, spec=spec, fields=record), NOW).notes

    [note] = notes("id BIGINT")
    assert "`discount DOUBLE`" in note and note.endswith("(runbook unknown-fields)")
    assert notes("id BIGINT, discount DOUBLE") == notes("id BIGINT", ignored_fields=["discount"]) == ()


def test_an_application_without_progress_of_its_own_is_starting() -> None:
    earlier = PROGRESS.model_copy(update={"app_id": "orders-g0-0"})
    status = status_of(replace(RUNNING, progress=earlier), NOW)
    assert (status.app, status.epoch, status.records) == ("starting", None, None)
    assert status.high_water_marks == {"orders": {0: 40, 1: 60}}, "what landed before is still landed"


@pytest.mark.parametrize("part", ["key", "value"])
def test_the_schemas_of_a_part_are_shown_while_a_registry_has_them(tmp_path: Path, part: str) -> None:
    settings = replace(load_settings(), home=tmp_path)
    used = SchemasInUse(part=part, format="avro", registry="shop")
    write_schemas_in_use(ControlFolder(tmp_path, "orders"), SchemasRecord(at=NOW, parts=(used,)))
    assert read_facts("orders", SPEC, settings).schemas == ()
    source = {"format": "avro", "registry": "shop"} | ({"as": "id"} if part == "key" else {})
    body = SPEC.model_dump(mode="json", by_alias=True, exclude_defaults=True) | {part: source}
    assert read_facts("orders", PipelineSpec.model_validate(body), settings).schemas == (used,)


def test_silence_is_told() -> None:
    assert status_of(RUNNING, NOW + 60).app == "silent for 61 s"


def test_an_outage_is_told() -> None:
    waiting = PROGRESS.model_copy(update={"state": "waiting", "waiting_for": "no answer from Kafka"})
    status = status_of(replace(RUNNING, progress=waiting), NOW)
    assert (status.app, status.situation) == ("waiting", "waiting")
    assert status.notes == ("waiting: no answer from Kafka (runbook broker-unavailable)",)


def test_how_the_last_application_ended_is_told() -> None:
    ended = replace(RUNNING, living=None, outcome=outcome("refused", "the topic was recreated"))
    status = status_of(ended, NOW)
    assert (status.app, status.alive, status.spark_ui) == ("refused", False, None)
    assert status.notes == (
        "the last application refused at 1970-01-12 13:46:35 UTC: the topic was recreated; remove the cause: Airflow starts it "
        "again by itself, while the DAG is not paused; to start it at once: lakebound start orders (runbook refused)",
    )


def test_an_application_that_died_without_a_word() -> None:
    status = status_of(replace(RUNNING, living=None), NOW)
    assert status.app == "died" and "/logs/orders.log" in status.notes[0]


def test_who_asked_for_a_pipeline_that_has_not_run() -> None:
    new = StatusFacts("orders", SPEC, "new")
    assert not status_of(new, NOW).is_asked_for and not status_of(replace(new, is_paused=True), NOW).is_asked_for
    asked = [
        {"is_paused": False},
        {"desired": Desired(since=NOW, by="bob")},
        {"desired": Desired(state="held")},
        {"last": APP},
        {"progress": PROGRESS},
        {"unreadable": ("desired.json cannot be read",)},
    ]
    for facts in asked:
        assert status_of(replace(new, **facts), NOW).is_asked_for, facts  # type: ignore[arg-type]


def test_nothing_ever_ran() -> None:
    status = status_of(StatusFacts("orders", SPEC, "new"), NOW)
    assert (status.app, status.desired, status.lag_records, status.freshness_seconds) == (
        "never started",
        "running",
        None,
        None,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "orders.yaml").write_text(yaml.safe_dump(ORDERS))
    return replace(load_settings({}), home=tmp_path / "home", pipelines=tmp_path / "pipelines")


def test_a_machine_on_which_nothing_exists(tmp_path: Path) -> None:
    nowhere = replace(load_settings({}), home=tmp_path / "home", pipelines=tmp_path / "pipelines")
    assert pipeline_statuses(nowhere) == []


def test_status_reads_the_state_of_a_living_process(settings: Settings) -> None:
    control = ControlFolder(settings.home, "orders")
    change_desired(control, "held", reason="audit")
    own = psutil.Process()
    living = APP.model_copy(update={"pid": own.pid, "pid_started_at": own.create_time(), "host": socket.gethostname()})
    write_submission(control, living)
    write_progress(control, PROGRESS)
    (status,) = pipeline_statuses(settings)
    assert (status.desired, status.reason, status.alive, status.app_id) == ("held", "audit", True, APP.app_id)
    assert status.outdated, "its progress names another source than the file's"


def test_status_reads_an_outcome(settings: Settings) -> None:
    control = ControlFolder(settings.home, "orders")
    write_submission(control, APP.model_copy(update={"pid": os.getpid(), "pid_started_at": 1.0}))
    write_outcome(control, outcome("failed", "the disk is full"))
    (status,) = pipeline_statuses(settings)
    assert status.app == "failed" and status.notes == (
        "the last application failed at 1970-01-12 13:46:35 UTC: the disk is full (runbook refused)",
    )


def test_a_file_that_cannot_be_read_is_a_note(settings: Settings) -> None:
    control = ControlFolder(settings.home, "orders")
    write_progress(control, PROGRESS)
    control.desired.write_text("{")
    control.lease.write_text('{"epoch": "x"}')
    (status,) = pipeline_statuses(settings)
    assert len(status.notes) == 2 and all("cannot be read" in note for note in status.notes)
    assert status.lag_records == 3


def test_a_pipeline_whose_file_is_wrong_or_gone_is_still_shown(settings: Settings) -> None:
    write_progress(ControlFolder(settings.home, "gone"), PROGRESS)
    (settings.pipelines / "wrong.yaml").write_text("pipeline: wrong\n")
    statuses = {status.pipeline: status for status in pipeline_statuses(settings)}
    assert sorted(statuses) == ["gone", "orders", "wrong"]
    assert all("no valid YAML" in statuses[name].notes[0] for name in ("gone", "wrong"))
    assert [status.pipeline for status in pipeline_statuses(settings, "gone")] == ["gone"]


def test_without_a_valid_file_status_says_how_the_application_is_and_not_to_start_it() -> None:
    """A start is refused until the file is valid; what lives, or how it ended, is told all the same."""
    file = "no valid YAML file declares it (lakebound check)"
    assert status_of(StatusFacts("orders", None, "new"), NOW).notes == (file,)
    failing = PROGRESS.model_copy(
        update={"failures": 3, "last_failure": "no space left", "failing_error": "CommitUnknownError"}
    )
    lives = status_of(replace(RUNNING, spec=None, progress=failing), NOW)
    assert lives.situation == "failing" and lives.notes[0] == file and "no space left" in lives.notes[1]
    ended = status_of(replace(RUNNING, spec=None, living=None, outcome=outcome("refused", "no room")), NOW)
    assert ended.situation is None and ended.notes == (file, "the last application refused: no room")
