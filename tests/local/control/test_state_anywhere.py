"""Each kind of state, in a folder and in an object store: what is written is read, and of two writers none is lost."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lakebound.control.crash_loop import CrashLoop, read_crash_loop, write_crash_loop
from lakebound.control.desired import (
    LostDesired,
    change_desired,
    keep_desired,
    read_desired,
    request_stop,
)
from lakebound.control.findings import Finding, Severity, change_findings, read_sources, write_findings
from lakebound.control.folder import ControlFolder, locked, locked_if_free, read_json, write_text
from lakebound.control.incidents import newest_incidents, read_incidents, record_incident
from lakebound.control.lease import acquire, check_held, read_lease, release, renew
from lakebound.control.progress import Outcome, Progress, read_outcome, read_progress, write_outcome, write_progress
from lakebound.control.recent_ledger import RecentLedger, read_recent_ledger, write_recent_ledger
from lakebound.control.submission import Submission, read_submission, write_submission
from lakebound.control.summaries import ProofSummary, read_proof, write_proof
from lakebound.errors import HeldError, LeaseHeldError, LeaseLostError, LockHeldError

pytestmark = pytest.mark.local

WRITERS = 8


def together(do: Any) -> list[Any]:
    """Return what so many threads that do it at once got, errors among it."""

    def tried(number: int) -> Any:
        try:
            return do(number)
        except LeaseHeldError as exc:
            return exc

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(tried, range(WRITERS)))


def test_a_lease_has_one_holder(control: ControlFolder) -> None:
    taken = together(lambda number: acquire(control, f"app-{number}", 30))
    leases = [one for one in taken if not isinstance(one, LeaseHeldError)]
    assert [one.app_id for one in leases] == [read_lease(control).app_id]  # type: ignore[union-attr]
    renewed = renew(control, leases[0], spark_ui="http://ui")
    assert read_lease(control) == renewed and renewed.spark_ui == "http://ui"
    release(control, renewed)
    later = acquire(control, "later", 30, above_epoch=7)
    assert later.epoch == 8
    with pytest.raises(LeaseLostError):
        renew(control, renewed)
    with pytest.raises(LeaseLostError):
        check_held(control, renewed)


def test_a_torn_lease_keeps_nobody_out(control: ControlFolder) -> None:
    write_text(control.lease, '{"epoch": 3')
    assert acquire(control, "app", 30, above_epoch=3).epoch == 4
    assert len(list(control.shared.glob("lease.json.torn-*"))) == 1


def test_no_desired_state_is_lost(control: ControlFolder) -> None:
    keep_desired(control)
    together(lambda number: change_desired(control, "running", restart=True, by=f"writer {number}"))
    assert read_desired(control).generation == WRITERS
    change_desired(control, "held", reason="look at it")
    with pytest.raises(HeldError):
        change_desired(control, "running", release_hold=False)
    control.desired.unlink()
    lost = read_desired(control)
    assert isinstance(lost, LostDesired) and lost.state == "held"


def test_what_an_application_says_is_read(control: ControlFolder) -> None:
    assert read_progress(control) is None and read_submission(control) is None and read_outcome(control, "app") is None
    submission, now = Submission(app_id="app", submitted_at=1.0), time.time()
    write_submission(control, submission)
    progress = Progress(pipeline="orders", app_id="app", started_at=now, updated_at=now)
    write_progress(control, progress)
    outcome = Outcome(app_id="app", verdict="stopped", reason="", started_at=now, ended_at=now)
    write_outcome(control, outcome)
    request_stop(control, "app", reason="enough", by="test")
    write_crash_loop(control, CrashLoop(ends=("app",), at=now))
    write_recent_ledger(control, RecentLedger(now))
    write_proof(control, ProofSummary(ok=True, sentence="", at=now))
    assert (read_submission(control), read_progress(control)) == (submission, progress)
    assert read_outcome(control, "app") == outcome and read_crash_loop(control).ends == ("app",)
    assert (read_json(control.stop_marker("app")) or {})["by"] == "test" and control.stop_marker("app").exists()
    assert read_recent_ledger(control) == RecentLedger(now) and read_proof(control) is not None
    assert control.exists()


def test_no_finding_is_lost(control: ControlFolder) -> None:
    write_findings(control, "doctor", ())

    def add(number: int) -> None:
        found = Finding(cause=f"cause-{number}", severity=Severity.WARNING, what="it", since=1.0)
        change_findings(control, "stream", lambda before: (*before, found))

    together(add)
    sources, problems = read_sources(control)
    assert [(one.source, len(one.findings)) for one in sources] == [("doctor", 0), ("stream", WRITERS)] and not problems


def test_incidents_are_read_newest_first(control: ControlFolder) -> None:
    assert read_incidents(control) == []
    written = [record_incident(control, "repair", f"repair {number}") for number in range(3)]
    assert {one.id for one in read_incidents(control)} == {one.id for one in written}
    assert len(newest_incidents(control, 2)[0]) == 2


def test_a_lock_is_one_holders(control: ControlFolder) -> None:
    with locked_if_free(control.repair) as is_mine:
        assert is_mine
        with pytest.raises(LockHeldError), locked(control.repair, 0.2):
            pass
        with locked_if_free(control.maintenance) as is_free:
            assert is_free
    with locked(control.repair, 1.0):
        pass
