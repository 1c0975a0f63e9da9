from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest
from tests.support.streams.stand_ins import OWNER, orders, settings_fixture  # noqa: F401
from tests.support.waiting import wait_until

from lakebound.control.applications import app_is_alive, ask_stop, living_submission, stop_streams, wait_ended
from lakebound.control.desired import change_desired
from lakebound.control.folder import write_json
from lakebound.control.lease import read_lease
from lakebound.control.progress import read_outcome, read_progress
from lakebound.control.submission import BackendName, Submission, read_submission, write_submission
from lakebound.errors import SubmitFailedError
from lakebound.landing import local_launch
from lakebound.settings import Settings, load_settings
from lakebound_airflow.backends.choice import backend_for, backend_of
from lakebound_airflow.backends.local import LocalBackend
from lakebound_airflow.backends.target import Target, UnknownBackendError, target_from_connection, target_from_environment


def test_an_application_is_detached_recorded_and_stops_when_asked(settings: Settings) -> None:
    backend, run_spec = LocalBackend(settings), orders(settings)
    control = run_spec.control
    submission = backend.submit(run_spec, OWNER)
    assert submission.pid is not None
    assert os.getsid(submission.pid) == submission.pid != os.getsid(0)
    assert read_submission(control) == submission
    assert submission.owner == OWNER
    assert backend.is_alive(control, submission), "it counts as alive before it has the lease"
    wait_until(lambda: (p := read_progress(control)) and p.app_id == submission.app_id, 20, "progress")
    ask_stop(control, submission.app_id, reason="test", by="test")
    assert wait_ended(control, submission.app_id, 20)
    outcome = read_outcome(control, submission.app_id)
    assert outcome is not None
    assert outcome.verdict == "stopped"
    assert not app_is_alive(control)
    assert backend.where_log_is(submission) == f"the application's log: {submission.log}"


def test_submitters_that_race_start_one_application(settings: Settings) -> None:
    found: list[str] = []
    backend = LocalBackend(settings)
    threads = [
        threading.Thread(target=lambda n=n: found.append(backend.submit(orders(settings, f"app-{n}"), OWNER).app_id))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    control = orders(settings).control
    wait_until(lambda: read_lease(control), 20, "a lease")
    lease = read_lease(control)
    assert lease is not None
    assert (lease.app_id, lease.epoch) == (found[0], 1)


def test_a_submitter_that_died_before_it_wrote_the_pid_leaves_an_application_that_is_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, run_spec = LocalBackend(settings), orders(settings)
    named = [sys.executable, "-c", "import time; time.sleep(60)", f"lakebound {run_spec.app_id}"]
    monkeypatch.setattr(local_launch, "spark_submit_command", lambda *_, **__: named)
    submission = backend.submit(run_spec, OWNER)
    write_submission(run_spec.control, submission.model_copy(update={"pid": None, "pid_started_at": None}))
    again = backend.submit(orders(settings, "another"), OWNER)
    assert (again.app_id, again.pid) == (submission.app_id, submission.pid)
    assert backend.kill(again)


def test_a_start_that_fails_leaves_the_record_of_the_application_before(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What kept that one from landing is what a person has to know; a pipeline that never ran goes on to be one."""
    run_spec, missing = orders(settings), ["/no/such/program"]
    with monkeypatch.context() as patch:
        patch.setattr(local_launch, "spark_submit_command", lambda *_, **__: missing)
        with pytest.raises(SubmitFailedError, match="/no/such/program"):
            local_launch.launch_stream(run_spec, settings)
        assert read_submission(run_spec.control) is None
    submission = LocalBackend(settings).submit(run_spec, OWNER)
    assert LocalBackend(settings).kill(submission)
    monkeypatch.setattr(local_launch, "spark_submit_command", lambda *_, **__: missing)
    with pytest.raises(SubmitFailedError, match="/no/such/program"):
        local_launch.launch_stream(orders(settings, "another"), settings)
    assert read_submission(run_spec.control) == submission


def test_a_killed_application_is_seen_dead_and_followed_by_another(settings: Settings) -> None:
    backend, run_spec = LocalBackend(settings), orders(settings)
    submission = backend.submit(run_spec, OWNER)
    wait_until(lambda: read_lease(run_spec.control), 20, "a lease")
    assert submission.pid is not None
    os.kill(submission.pid, signal.SIGKILL)
    wait_until(lambda: not backend.is_alive(run_spec.control, submission), 20, "its death")
    assert read_outcome(run_spec.control, submission.app_id) is None
    second = backend.submit(orders(settings, "orders-g0-2"), OWNER)
    assert second.app_id == "orders-g0-2"
    wait_until(lambda: (lease := read_lease(run_spec.control)) and lease.epoch == 2, 20, "the next epoch")


def test_a_stopped_process_is_ended_by_force(settings: Settings) -> None:
    backend, run_spec = LocalBackend(settings), orders(settings)
    submission = backend.submit(run_spec, OWNER)
    assert submission.pid is not None
    os.kill(submission.pid, signal.SIGSTOP)
    assert backend.is_alive(run_spec.control, submission)
    assert backend.kill(submission)
    assert not psutil.pid_exists(submission.pid) or psutil.Process(submission.pid).status() == psutil.STATUS_ZOMBIE
    assert not backend.is_alive(run_spec.control, submission)


def test_an_application_that_was_started_past_the_record_is_found_by_its_lease(settings: Settings) -> None:
    backend, run_spec = LocalBackend(settings), orders(settings)
    submission = backend.submit(run_spec, OWNER)
    wait_until(lambda: read_lease(run_spec.control), 20, "a lease")
    run_spec.control.submission.unlink()
    found = living_submission(run_spec.control)
    assert found is not None
    assert (found.app_id, found.owner) == (submission.app_id, None)
    assert backend.submit(orders(settings, "another"), OWNER).app_id == submission.app_id


def test_stop_streams_ends_every_application_also_one_that_does_not_obey(settings: Settings) -> None:
    run_spec = orders(settings)
    submission = LocalBackend(settings).submit(run_spec, OWNER)
    wait_until(lambda: read_lease(run_spec.control), 20, "a lease")
    assert submission.pid is not None
    os.kill(submission.pid, signal.SIGSTOP)
    assert stop_streams(settings, deadline_seconds=1) == [submission.app_id]
    assert not app_is_alive(run_spec.control)
    assert stop_streams(settings) == []


def test_a_newer_generation_ends_the_application(settings: Settings) -> None:
    run_spec = orders(settings)
    submission = LocalBackend(settings).submit(run_spec, OWNER)
    wait_until(lambda: read_lease(run_spec.control), 20, "a lease")
    change_desired(run_spec.control, "running", restart=True)
    assert wait_ended(run_spec.control, submission.app_id, 20)


def test_a_failed_application_leaves_its_last_words(settings: Settings) -> None:
    run_spec = orders(settings)
    write_json(run_spec.control.folder / "behaviour.json", {"fail_after_seconds": 0.1})
    backend = LocalBackend(settings)
    submission = backend.submit(run_spec, OWNER)
    assert wait_ended(run_spec.control, submission.app_id, 20)
    assert submission.log is not None and "told to fail" in submission.log.read_text()
    assert "told to fail" not in backend.where_log_is(submission)


def test_the_choice_of_a_backend(tmp_path: Path) -> None:
    found = load_settings({"LAKEBOUND_HOME": str(tmp_path)})
    assert target_from_environment(found, {}) == Target(BackendName.LOCAL, "local[2]")
    cluster = load_settings({"LAKEBOUND_HOME": str(tmp_path), "LAKEBOUND_SPARK_MASTER": "spark://m:7077"})
    standalone = Target(BackendName.STANDALONE, "spark://m:7077", "http://m:6066")
    assert target_from_environment(cluster, {"LAKEBOUND_BACKEND": "standalone"}) == standalone
    assert target_from_connection("c", "spark://m", 7077, {}) == standalone
    assert target_from_connection("c", "spark://m:7077", None, {"rest-port": 7066}).rest_url == "http://m:7066"
    assert target_from_connection("c", "local[4]", None, {}) == Target(BackendName.LOCAL, "local[4]")
    with pytest.raises(UnknownBackendError, match=r"'yarn'.*local, standalone"):
        target_from_connection("c", "yarn", None, {})
    with pytest.raises(UnknownBackendError, match="LAKEBOUND_BACKEND"):
        target_from_environment(found, {"LAKEBOUND_BACKEND": "cloud"})
    for target in (Target(), standalone):
        backend = backend_for(target, found)
        assert type(backend) is type(backend_of(Submission(app_id="a", backend=target.backend), found))
