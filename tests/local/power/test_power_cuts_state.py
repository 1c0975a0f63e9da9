"""After a power cut at any moment a pipeline's files of state are whole, or are passed over and written anew."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.power.disk import states
from tests.support.power.recording import Recording
from tests.support.tables.local_tables import places
from tests.support.tables.maintained import maintained_settings

from lakebound.alerts.lateness import look_whether_health_is_late, note_health_late
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.control.crash_loop import CrashLoop, read_crash_loop, write_crash_loop
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.findings import read_source, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import read_incidents, record_incident
from lakebound.control.lease import acquire, read_lease, readable_lease, release, renew
from lakebound.control.progress import Outcome, Progress, read_outcome, readable_progress, write_outcome, write_progress
from lakebound.control.replay_result import ReplayResult, read_result, write_result
from lakebound.control.submission import Submission, read_submission, write_submission
from lakebound.operations.maintenance.past_reading import read_runs, record_run
from lakebound.operations.maintenance.steps import RunReport
from lakebound.operations.maintenance.table_engine import staged_before_ms
from lakebound.settings import Settings
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

APP, SPEC = "orders-g1-abc", TableSpec(format="delta", name="shop.orders")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "world"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def lease_of(control: ControlFolder) -> Any:
    held = readable_lease(control)
    return None if held is None else held.epoch


def work(control: ControlFolder, home: Path, settings: Settings) -> Iterator[tuple[str, Callable[[], Any], bool]]:
    """Write every file of state; yield what was written, how it is read, and whether it must outlast a power cut."""
    lease = acquire(control, APP, 30.0)
    yield "lease", lambda: lease_of(control), True
    change_desired(control, "held", reason="a rewind")
    yield "desired", lambda: read_desired(control).state, True
    write_submission(control, Submission.model_validate({"app_id": APP, "pipeline": "orders", "backend": "local"}))
    yield "submission", lambda: getattr(read_submission(control), "app_id", None), True
    for batch in (1, 2):
        now = time.time()
        write_progress(control, Progress(pipeline="orders", app_id=APP, started_at=now, updated_at=now, batch=batch))
        yield "progress", lambda: getattr(readable_progress(control), "batch", None), False
    write_findings(control, "doctor", [])
    yield "findings", lambda: read_source(control, "doctor"), False
    note_health_late(settings, -1.0)
    yield "health late", lambda: look_whether_health_is_late(settings), False
    record_incident(control, "rewind", "a test", outcome="done")
    yield "incident", lambda: len(read_incidents(control)), True
    write_crash_loop(control, CrashLoop())
    AlertStore(home).write(AlertState(dropped=3))
    yield "alerts", lambda: AlertStore(home).read().dropped, True
    write_result(control, ReplayResult(app_id="replay-1", landed=5))
    yield "replay", lambda: getattr(read_result(control, "replay-1", ReplayResult), "landed", None), True
    record_run(control, RunReport(pipeline="orders", run_id="run-1", started_at_ms=1, ended_at_ms=2))
    yield "maintenance", lambda: len(read_runs(control)), True
    lease = renew(control, lease)
    write_outcome(control, Outcome(app_id=APP, verdict="completed", reason="", started_at=1.0, ended_at=2.0))
    yield "outcome", lambda: getattr(read_outcome(control, APP), "verdict", None), True
    release(control, lease)


def test_what_must_last_lasts_and_the_rest_hurts_nobody(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    control, settings, at = ControlFolder(home, "orders"), maintained_settings(home), places(home)
    recording, told = Recording(home), {}
    with recording.running(monkeypatch):
        recording.reached("")
        lasting: dict[str, tuple[Callable[[], Any], Any]] = {}
        for number, (what, read, must_last) in enumerate(work(control, home, settings)):
            if must_last:
                lasting[what] = (read, read())
            told[f"{number}: {what}"] = dict(lasting)
            recording.reached(f"{number}: {what}")
    count = 0
    for state in states(recording.events, seed=1, most=16):
        state.put_at(home)
        count += 1
        for what, (read, expected) in told[state.mark].items():
            if what != "lease":
                assert read() == expected, f"{state.mark}: {what}"
        goes_on(control, home, settings, at)
    assert count > 50


def goes_on(control: ControlFolder, home: Path, settings: Settings, at: Places) -> None:
    """Read everything as the next processes do; then start."""
    readable_progress(control)
    read_crash_loop(control)
    read_source(control, "doctor")
    look_whether_health_is_late(settings)
    staged_before_ms(SPEC, at, control, int(time.time() * 1000))
    read_submission(control), read_desired(control), read_incidents(control), AlertStore(home).read()
    epoch = acquire(control, "orders-g2-def", 30.0, above_epoch=1, by_force=True).epoch
    assert epoch > 1
    held = read_lease(control)
    assert held is not None and held.epoch == epoch
