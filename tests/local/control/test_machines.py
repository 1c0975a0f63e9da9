"""Machines that share nothing but a bucket: one dies and another takes over; a third one sees, stops and starts.

The application is one in small, with the real lease, signs of life and commits.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml
from deltalake import DeltaTable
from tests.support.s3.faults import Fault, slow_down
from tests.support.s3.running import S3Server
from tests.support.state.machines import Machine
from tests.support.state.shared import tell_state
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.stand_ins import ORDERS
from tests.support.tables.local_tables import make_table
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.control.crash_loop import CrashLoop, count_last_end
from lakebound.control.desired import Desired
from lakebound.control.folder import ControlFolder
from lakebound.control.last_end import read_last_end
from lakebound.control.lease import lease_is_live, read_lease
from lakebound.control.progress import read_outcome, read_progress
from lakebound.landing.run_spec import make_run_spec
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of

pytestmark = [pytest.mark.local, pytest.mark.timeout(300)]

TTL_SECONDS = 4.0
STATE = "state/pipelines/*"
SPEC = PipelineSpec.model_validate(
    ORDERS | {"warehouse": "bucket", "limits": {"lease_ttl_seconds": TTL_SECONDS}, "tables": [{"format": "delta", "name": "o"}]}
)


@dataclass
class World:
    """Machines, the bucket, and what this process sees of the pipeline: it is a machine of its own."""

    settings: Settings
    first: Machine
    second: Machine
    third: Machine

    @property
    def control(self) -> ControlFolder:
        """The state as this machine sees it."""
        return ControlFolder(self.settings.home, "orders")

    def start(
        self, machine: Machine, app_id: str, ttl_seconds: float = TTL_SECONDS, log: Path | None = None
    ) -> subprocess.Popen[bytes]:
        """Start an application on a machine; what it says goes into the log, where one is given."""
        settings = replace(self.settings, home=machine.home)
        spec = SPEC.model_copy(update={"limits": SPEC.limits.model_copy(update={"lease_ttl_seconds": ttl_seconds})})
        orders = make_run_spec(spec, settings, Desired(), app_id).model_dump_json(by_alias=True)
        command = [sys.executable, "-m", "tests.support.state.landing_process", "--run-spec", orders]
        with ExitStack() as opened:
            said = None if log is None else opened.enter_context(log.open("wb"))
            return subprocess.Popen(command, env=machine.environ, stdout=said, stderr=said, start_new_session=True)

    def lands(self, app_id: str) -> bool:
        """Whether that application has landed."""
        progress = read_progress(self.control)
        return progress is not None and progress.app_id == app_id and progress.records > 0

    def is_silent(self) -> bool:
        """Whether this machine has seen that nobody holds the lease."""
        lease = read_lease(self.control)
        return lease is None or not lease_is_live(self.control, lease, time.time())

    def assert_exactly_once(self) -> None:
        """Check by the rows alone that every offset from the first to the last is there once."""
        places = places_of(self.settings, "bucket")
        location = places.folder(SPEC.tables[0])
        found = DeltaTable(location.address, storage_options=location.delta_options).to_pyarrow_table(columns=["id"])
        counts = Counter(found["id"].to_pylist())
        assert counts and set(counts) == set(range(max(counts) + 1)) and set(counts.values()) == {1}


@pytest.fixture
def world(s3_server: S3Server, s3_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Three machines and a table."""
    for name, value in tell_state(s3_server, s3_bucket, tmp_path / "pipelines").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path / "here"))
    body = SPEC.model_dump(mode="json", by_alias=True, exclude_none=True)
    (tmp_path / "pipelines" / "orders.yaml").write_text(yaml.safe_dump(body))
    settings = load_settings()
    make_table(SPEC.tables[0], places_of(settings, "bucket"))
    machines = [Machine(name, tmp_path, {}) for name in ("first", "second", "third")]
    yield World(settings, *machines)
    for machine in machines:
        machine.die()


def test_a_machine_dies_and_another_takes_over(world: World, s3_server: S3Server) -> None:
    world.start(world.first, "app-1")
    wait_until(lambda: world.lands("app-1"), 60, "landing on the first machine")
    assert world.third.status("orders")["alive"]
    world.first.die()
    wait_until(world.is_silent, 60, "the end of the dead machine's lease")
    # This machine has watched the silence, so the second one need not watch it anew: it takes the lease at its first look.
    second = world.start(world.second, "app-2")
    wait_until(lambda: world.lands("app-2"), 60, "landing on the second machine")
    assert read_lease(world.control).epoch == 2 and second.poll() is None  # type: ignore[union-attr]
    broken = [
        Fault("disconnect", methods=("PUT",), key=STATE, after_effect=True, count=3),
        Fault("status", methods=("PUT",), key=STATE, after_effect=True, skip=3, count=2),
        slow_down(methods=("PUT", "GET"), key=STATE, skip=6, count=3),
        Fault("half body", methods=("GET",), key=STATE, skip=2, count=2),
    ]
    numbers = [s3_server.faults.add(fault) for fault in broken]
    wait_until(lambda: all(map(s3_server.faults.hits, numbers)), 60, "the faults")
    s3_server.faults.clear()
    assert second.poll() is None and read_lease(world.control).epoch == 2  # type: ignore[union-attr]
    doctor = world.third.run("doctor", "orders", "--json", code=1)
    assert "app-2" in doctor or "kafka" in doctor.lower()
    stopped = world.third.ask("control", "orders", "stop", "--reason", "enough")
    assert stopped["state"] == "met" and second.wait(HANGS_SECONDS) == 0
    outcome = read_outcome(world.control, "app-2")
    assert outcome is not None and outcome.verdict == "stopped" and "enough" in outcome.reason
    assert world.third.status("orders")["desired"] == "stopped"
    world.assert_exactly_once()
    assert not list(world.third.home.glob("pipelines/*/*.json")), "what is shared was also written to the machine's disk"


def test_without_its_state_an_application_ends_and_nothing_is_lost(world: World, s3_server: S3Server, tmp_path: Path) -> None:
    log = tmp_path / "app-1.log"
    app = world.start(world.first, "app-1", log=log)
    wait_until(lambda: world.lands("app-1"), 60, "landing")
    for method in ("GET", "PUT"):
        s3_server.faults.add(Fault("status", methods=(method,), key=STATE, count=None))
    # The tables' part of the store answers: only the state is away.
    wait_until(lambda: "the end cannot be recorded yet" in log.read_text(), 90, "its end, of which nobody can be told")
    assert "StateAwayError" in log.read_text()
    s3_server.faults.clear()
    assert app.wait(HANGS_SECONDS) == 1
    outcome = read_outcome(world.control, "app-1")
    assert outcome is not None and outcome.error_class == "StateAwayError" and outcome.is_outage
    assert count_last_end(CrashLoop(), read_last_end(world.control), 0.0) == CrashLoop(), "it does not count as a failed start"
    wait_until(world.is_silent, 60, "the end of its lease")
    later = world.start(world.second, "app-2")
    wait_until(lambda: world.lands("app-2"), 60, "landing on another machine")
    world.third.ask("control", "orders", "stop")
    assert later.wait(HANGS_SECONDS) == 0
    world.assert_exactly_once()


@only_in_long_form  # shortly: tests/chaos/test_zombie.py, and tests/local/tables of handles of an older epoch
def test_a_zombie_without_its_state_is_refused_by_the_table(world: World, s3_server: S3Server) -> None:
    zombie = world.start(world.first, "app-1")
    wait_until(lambda: world.lands("app-1"), 60, "landing")
    for process in world.first.processes():
        process.suspend()
    wait_until(world.is_silent, 60, "the end of the suspended machine's lease")
    later = world.start(world.second, "app-2")
    wait_until(lambda: world.lands("app-2"), 60, "landing on another machine")
    for process in world.first.processes():
        process.resume()
    assert zombie.wait(HANGS_SECONDS) != 0
    world.third.ask("control", "orders", "stop")
    assert later.wait(HANGS_SECONDS) == 0
    world.assert_exactly_once()


@only_in_long_form
def test_requests_of_state_per_hour(world: World, s3_server: S3Server) -> None:
    """The table of docs/how-to/object-stores.md, with a lease of 30 seconds and without turns."""
    world.start(world.first, "app-1", ttl_seconds=30.0)
    wait_until(lambda: world.lands("app-1"), 60, "landing")
    with s3_server.counters.counting() as counted:
        began = time.monotonic()
        time.sleep(60)
        seconds = time.monotonic() - began
    of_state = counted.only(lambda request: request.key.startswith("state/"))
    per_hour = {method: count * 3600 / seconds for method, count in of_state.by("method").items()}
    print(per_hour)
    assert per_hour["GET"] <= 1.1 * (3600 + 360) and per_hour["PUT"] <= 1.1 * (360 + 720 + 60)
