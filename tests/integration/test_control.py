"""``lakebound control`` and the runbooks' commands without Airflow: one application, one broker, the tests in this order."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from tests.support.full_disk import NotMountedError, SmallDisk
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import topic_maker
from tests.support.kafka.producing import JournalingProducer, as_json, event, send_events
from tests.support.runbook_pages import PAGES, REPOSITORY, commands
from tests.support.streams.command_line import answer, lakebound
from tests.support.streams.pipelines import ANY_LANE, Pipeline, assert_exactly_once, make_pipeline
from tests.support.waiting import wait_until
from typer.testing import CliRunner

from lakebound.alerts.look import look_at
from lakebound.cli import app
from lakebound.control.applications import living_submission, stop_streams
from lakebound.control.crash_loop import read_crash_loop
from lakebound.control.desired import read_desired
from lakebound.control.findings import read_source
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import read_lease
from lakebound.control.person import operating_system_user
from lakebound.control.progress import Outcome, read_outcome, readable_progress
from lakebound.ledger.entry import high_water_marks
from lakebound.local.broker import Broker
from lakebound.settings import load_settings
from lakebound.spec.load import load_pipelines
from lakebound.tables.iceberg import open as catalogs
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table

pytestmark = pytest.mark.integration

CHANGES = ("start", "stop", "control", "run", "create-topic", "replay", "validate", "up", "down", "tidy", "watch", "backup")
CHANGING_OPTIONS = {
    "alerts": "--test",
    "maintain": "--run",
    "quarantine": "--replay",
    "recover": "--apply",
    "redo": "--apply",
    "restore": "--apply",
    "rewind": "--apply",
}
FLOOD, SECRET = "quarantine-flood", "DE02-1203"
PLANNED_BY_SPARK = ("check", "try")
"""These change nothing, and take as long as a Spark session; tests/integration/test_getting_started.py runs them."""


@dataclass(frozen=True)
class Controlled:
    """A pipeline that has landed, the application that did it, the records, and the disks of its state and tables."""

    pipeline: Pipeline
    first: str
    journal: Journal
    disks: tuple[SmallDisk, SmallDisk] | None

    @property
    def control(self) -> ControlFolder:
        """Its state folder."""
        return self.pipeline.control


@pytest.fixture(scope="module")
def controlled(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> Iterator[Controlled]:
    """A pipeline whose YAML and places the commands find; whatever runs of it is ended with the module."""
    folder, journal = tmp_path_factory.mktemp("controlled"), Journal()
    topic = topic_maker(broker.bootstrap_servers)("controlled")
    made = make_pipeline(folder, broker.bootstrap_servers, topic, lane=ANY_LANE)
    (folder / "pipelines").mkdir()
    body = made.spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    (folder / "pipelines" / "events.yaml").write_text(yaml.safe_dump(body))
    send_events(JournalingProducer(broker.bootstrap_servers, journal), topic, range(300))
    with pytest.MonkeyPatch.context() as patch, small_disks(made.settings.home, made.settings.warehouse) as disks:
        for name, value in {**made.settings.environment(), "LAKEBOUND_PIPELINES": str(folder / "pipelines")}.items():
            patch.setenv(name, value)
        patch.chdir(REPOSITORY)
        try:
            first = running(made)
            wait_until(lambda: landed(made, journal), 150, "the records")
            yield Controlled(made, first, journal, disks)
        finally:
            stop_streams(made.settings, deadline_seconds=20)


@contextmanager
def small_disks(home: Path, warehouse: Path) -> Iterator[tuple[SmallDisk, SmallDisk] | None]:
    """Have a small disk for the state and one for the tables; None where nothing can be mounted."""
    with ExitStack() as stack:
        try:
            yield stack.enter_context(SmallDisk(home, 64)), stack.enter_context(SmallDisk(warehouse, 64))
        except NotMountedError:
            yield None


def running(pipeline: Pipeline) -> str:
    """Start an application by hand, and return its id."""
    lakebound("run", "events", "--detach")
    found = living_submission(pipeline.control)
    assert found is not None
    return found.app_id


def landed(pipeline: Pipeline, journal: Journal) -> bool:
    progress = readable_progress(pipeline.control)
    marks = progress.high_water_marks if progress is not None else {}
    return all(marks.get(t, {}).get(p, 0) >= end for t, ends in journal.ends().items() for p, end in ends.items())


def ended(pipeline: Pipeline, app_id: str) -> Outcome:
    outcome = read_outcome(pipeline.control, app_id)
    assert outcome is not None, pipeline.control.log(app_id).read_text()[-3000:]
    return outcome


def changes(words: list[str]) -> bool:
    """Whether a command changes anything but what it prints."""
    if "--plan" in words:
        return False
    return words[1] in CHANGES or CHANGING_OPTIONS.get(words[1], "") in words[2:]


def read_only_commands() -> list[str]:
    """Return every command of every runbook that changes nothing, once each."""
    found = [words for page in PAGES for words in commands(page) if words[0] == "lakebound" and len(words) > 1]
    return sorted({shlex.join(words[1:]) for words in found if not changes(words) and words[1] not in PLANNED_BY_SPARK})


def test_every_command_of_the_runbooks_that_changes_nothing_runs_as_printed(controlled: Controlled, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text('{"id":"5f1f9f3c-3b0a-4b0e-8f5e-0d9c7f8d2f11"}')
    now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S")
    values = {"P": "events", "TIME": now, "PATH": str(checkpoint), "NEWPATH": str(checkpoint)}
    values["delta:FOLDER"] = f"delta:{controlled.pipeline.settings.warehouse / 'delta' / 'events'}"
    values["HOST:PORT"] = controlled.pipeline.spec.connection.bootstrap_servers
    before, problems, said = read_desired(controlled.control), [], {}
    for command in read_only_commands():
        done = CliRunner().invoke(app, [values.get(word, word) for word in shlex.split(command)])
        said[command] = f"{done.output}\n{done.stderr}"
        # Code 1 is a finding, or a refusal in one sentence; what is not foreseen, or is wrong usage, is neither.
        if done.exit_code not in (0, 1) or "unexpected" in said[command] or "Usage:" in said[command]:
            problems.append(f"lakebound {command} ends with {done.exit_code}: {said[command]}")
    assert not problems, "\n\n".join(problems)
    assert len(said) >= 20
    assert f"LAKEBOUND_HOME: {controlled.control.home}" in said["status"]
    assert f"kafka answers {values['HOST:PORT']}" in " ".join(said["status"].split()), "the broker of the YAML is asked"
    assert "missing 0" in said["prove P --deep"] and "events" in said["ledger P"]
    assert read_desired(controlled.control) == before
    assert living_submission(controlled.control) is not None


def test_a_flood_of_bad_records_is_told_by_status_doctor_and_alerts(controlled: Controlled) -> None:
    pipeline = controlled.pipeline
    send_bad(controlled, 60)
    wait_until(lambda: landed(pipeline, controlled.journal) and told_bad(pipeline) >= 60, 60, "the bad records")
    assert look_at(pipeline.spec, pipeline.settings) == []
    (found,) = (read_source(controlled.control, "objectives") or pytest.fail("nobody looked")).findings
    assert (found.cause, found.runbook, found.evidence["reason does_not_fit: amount"]) == ("quarantine-rate", FLOOD, 60)
    share = "of the records of the application's last 300 s went to quarantine (60 of "
    assert share in found.what and ", most often does_not_fit: amount (60); the limit is 5.0%" in found.what
    assert share in lakebound("status", "events").stdout
    assert FLOOD in {one["rule"] for one in answer("doctor", "events")["findings"]}
    state = "".join(path.read_text() for path in controlled.control.folder.rglob("*.json"))
    assert FLOOD in state and SECRET not in state, "no record leaves its table"
    assert living_submission(controlled.control) is not None


def test_full_disks_of_state_and_tables_are_waited_out_by_the_running_application_and_named(controlled: Controlled) -> None:
    if controlled.disks is None:
        pytest.skip("no small file system can be mounted here")
    (state, tables), pipeline, control = controlled.disks, controlled.pipeline, controlled.control
    state.fill()
    send_good(controlled, 100)
    wait_until(lambda: in_tables(pipeline, controlled.journal), 60, "the records, while the state is full")
    state.make_room()
    wait_until(lambda: landed(pipeline, controlled.journal), 30, "progress, when the state has room again")

    tables.fill()
    began = time.monotonic()
    send_good(controlled, 100)
    wait_until(lambda: failing(pipeline) == "DiskFullError", 90, "the application naming the disk")
    print(f"tables on a full disk: named by the application after {time.monotonic() - began:.1f} s")
    assert look_at(pipeline.spec, pipeline.settings) == []
    (found,) = (read_source(control, "application") or pytest.fail("nobody looked")).findings
    assert found.runbook == "disk-full" and f"no space is left on the disk {tables.folder}" in found.what
    said = lakebound("status", "events").stdout
    assert f"no space is left on the disk {tables.folder}" in said and f"critical: the disk {tables.folder} (tables)" in said
    assert f"critical: the disk {tables.folder}" in CliRunner().invoke(app, ["doctor", "events"]).output
    tables.make_room()
    wait_until(lambda: landed(pipeline, controlled.journal), 60, "the records, when there is room again")
    wait_until(lambda: failing(pipeline) is None, 10, "the end of the trouble")
    living = living_submission(control)
    assert living is not None and living.app_id == controlled.first and read_crash_loop(control).ends == ()


@pytest.fixture(scope="module")
def backup(controlled: Controlled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a backup that was made while the stream ran; several commits to each table follow it."""
    file = tmp_path_factory.mktemp("backup") / "backup.tar.gz"
    lakebound("backup", str(file))
    producer = JournalingProducer(controlled.pipeline.spec.connection.bootstrap_servers, controlled.journal)
    for number in range(3):
        send_events(producer, controlled.pipeline.spec.topics[0], range(1000 + 10 * number, 1010 + 10 * number))
        wait_until(lambda: landed(controlled.pipeline, controlled.journal), 60, "records after the backup")
    return file


def restored(controlled: Controlled, file: Path) -> None:
    """Restore the backup, and have the catalog name what the table went on to."""
    places = places_of(controlled.pipeline.settings, "default")
    catalogs.open_catalog(places).engine.dispose()
    planned = lakebound("restore", str(file)).stdout
    lakebound("restore", str(file), "--apply", planned.split()[-1])
    catalogs._open_catalog.cache_clear()
    desired = read_desired(controlled.control)
    assert (desired.state, "restored from the backup" in desired.reason) == ("held", True)
    assert {"catalog-behind"} <= {one["rule"] for one in answer("doctor", "events", code=1)["findings"]}
    lakebound("recover", "events", "--apply", answer("recover", "events")["hash"])
    assert read_desired(controlled.control).state == "held", "a person starts it"


def test_nothing_is_restored_while_the_application_runs(controlled: Controlled, backup: Path) -> None:
    said = lakebound("restore", str(backup), code=1).stderr
    assert f"the application {controlled.first} runs; stop it: lakebound stop events" in said
    assert controlled.control.desired_sign.exists() and controlled.control.desired.exists(), "the first start wrote both"


def test_a_real_application_is_restarted_held_restored_started_and_stopped_without_airflow(
    controlled: Controlled, backup: Path
) -> None:
    pipeline, first = controlled.pipeline, controlled.first
    assert f"{first} runs" in lakebound("start", "events").stdout
    said = answer("control", "events", "restart", "--reason", "a new transform")
    assert (said["state"], said["application"], said["desired"]["by"]) == ("met", first, operating_system_user())
    assert "to start it now, without Airflow: lakebound run events --detach" in said["starts"]
    assert ended(pipeline, first).verdict == "stopped" and "a newer generation" in ended(pipeline, first).reason

    assert answer("control", "events", "hold", "--reason", "audit")["state"] == "met"
    assert "held (audit)" in lakebound("control", "events", "restart", code=1).stderr
    before = read_lease(controlled.control)
    restored(controlled, backup)
    lakebound("start", "events")
    second = running(pipeline)
    wait_until(lambda: (progress := readable_progress(pipeline.control)) and progress.app_id == second, 60, "the application")
    lease = read_lease(controlled.control)
    assert lease is not None and before is not None and lease.epoch > before.epoch, "no epoch comes back with the backup"
    said = lakebound("stop", "events", "--reason", "mistaken").stdout
    assert said.startswith("events: the desired state is stopped; nothing runs")
    assert (ended(pipeline, second).verdict, "mistaken" in ended(pipeline, second).reason) == ("stopped", True)
    assert_exactly_once(pipeline, controlled.journal)


def test_an_application_that_may_not_go_on_in_a_flood_holds_its_pipeline_and_loses_nothing(controlled: Controlled) -> None:
    pipeline, file = controlled.pipeline, load_settings().pipelines / "events.yaml"
    before = file.read_text()
    file.write_text(before + yaml.safe_dump({"objectives": {"quarantine_rate": {"stop_at": 0.5, "min_quarantined": 20}}}))
    lakebound("stop", "events")
    lakebound("start", "events")
    third = running(pipeline)
    send_bad(controlled, 40)
    wait_until(lambda: read_outcome(controlled.control, third) is not None, 90, "the end of the application")
    outcome, desired = ended(pipeline, third), read_desired(controlled.control)
    assert (outcome.verdict, outcome.error_class, outcome.runbook) == ("refused", "QuarantineFloodError", FLOOD)
    assert (desired.state, desired.by, desired.reason) == ("held", third, outcome.reason)
    assert "does_not_fit: amount" in outcome.reason and SECRET not in outcome.reason
    wait_until(lambda: living_submission(controlled.control) is None, 60, "the end of its process")
    spec = load_pipelines(load_settings()).specs["events"]
    assert look_at(spec, pipeline.settings) == []
    (found,) = (read_source(controlled.control, "objectives") or pytest.fail("nobody looked")).findings
    assert (found.severity.value, found.runbook) == ("critical", FLOOD)
    said = answer("doctor", "events", code=1)
    assert said["verdict"] == "needs_person" and FLOOD in {one["rule"] for one in said["findings"]}
    assert f"held by {third}" in lakebound("status", "events").stdout
    if not landed(pipeline, controlled.journal):
        file.write_text(before)  # what the runbook says: let the rest pass into quarantine
        lakebound("start", "events")
        running(pipeline)
        wait_until(lambda: landed(pipeline, controlled.journal), 90, "the rest")
    assert_exactly_once(pipeline, controlled.journal)


def send_good(controlled: Controlled, count: int) -> None:
    """Send records that land."""
    bootstrap_servers, topic = controlled.pipeline.spec.connection.bootstrap_servers, controlled.pipeline.spec.topics[0]
    send_events(JournalingProducer(bootstrap_servers, controlled.journal), topic, range(count))


def in_tables(pipeline: Pipeline, journal: Journal) -> bool:
    """Whether the tables have every record, by their own ledgers."""
    tables = [open_table(table, places_of(pipeline.settings, "default")).read_ledger() for table in pipeline.spec.tables]
    marks = [high_water_marks(view.coverage) for view in tables]
    return all(
        one.get(t, {}).get(p, 0) >= end for one in marks for t, ends in journal.ends().items() for p, end in ends.items()
    )


def failing(pipeline: Pipeline) -> str | None:
    progress = readable_progress(pipeline.control)
    return progress.failing_error if progress is not None else None


def send_bad(controlled: Controlled, count: int) -> None:
    """Send records whose amount is a text."""
    producer = JournalingProducer(controlled.pipeline.spec.connection.bootstrap_servers, controlled.journal)
    for number in range(count):
        producer.send(controlled.pipeline.spec.topics[0], as_json({**event(number), "amount": SECRET}), fate="quarantine")
    producer.flush()


def told_bad(pipeline: Pipeline) -> int:
    progress = readable_progress(pipeline.control)
    return progress.recent.quarantined if progress is not None and progress.recent is not None else 0
