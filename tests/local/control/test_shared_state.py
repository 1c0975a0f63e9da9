"""State in an object store: machines whose clocks and processes the others cannot see, and a store that fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.s3.access import AccessKey, Permission
from tests.support.s3.faults import Fault, slow_down
from tests.support.s3.running import S3Server
from tests.support.state.shared import shared_control, tell_state
from tests.support.tables.stored import KEY_ID, SECRET

from lakebound.alerts.lateness import note_health_late
from lakebound.alerts.round import watch_folder
from lakebound.control import process_identity
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.findings import read_sources
from lakebound.control.folder import ControlFolder, locked, locked_if_free, names_of_pipelines, write_text
from lakebound.control.lease import Lease, acquire, lease_is_live, read_lease, renew
from lakebound.control.process_identity import PidSpace
from lakebound.control.shared_lock import SILENT_SECONDS
from lakebound.control.turns import AskForTurn, GiveTurns
from lakebound.errors import LeaseHeldError, LeaseLostError, SettingError
from lakebound.inspection.doctor.pipeline.collect import read_scratch
from lakebound.settings import load_settings
from lakebound.storage import location, options
from lakebound.storage.objects import ObjectStoreRefusedError, ObjectStoreUnavailableError
from lakebound.tables.outages import passes

pytestmark = pytest.mark.local

TTL_SECONDS = 30.0


class Machines:
    """Lets this process be on one machine after the other, each with a clock and a memory of its own."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self._patch, self._folder = patch, folder
        self.uptime = 1_000.0
        patch.setattr("lakebound.control.sights._uptime_seconds", lambda: self.uptime)

    def on(self, name: str) -> None:
        """Be on that machine from here on."""
        space = PidSpace(name, f"boot of {name}", "pid:[1]")
        for module in ("lease", "process_identity"):
            self._patch.setattr(f"lakebound.control.{module}.own_space", lambda: space)
        memory = self._folder / name / "ram"
        memory.mkdir(parents=True, exist_ok=True)
        self._patch.setattr("lakebound.control.fallback_files.ram_disks", lambda: [memory])


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machines:
    """Machines of the test's own."""
    assert process_identity.own_space is not None
    return Machines(monkeypatch, tmp_path)


@pytest.fixture
def control(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> ControlFolder:
    """The state of a pipeline in a bucket."""
    return shared_control(s3_server, s3_bucket, tmp_path / "home")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that never ask again by themselves."""
    monkeypatch.setattr(options, "RETRIES", 0)
    location._open_bucket.cache_clear()
    yield
    location._open_bucket.cache_clear()


def test_a_silent_machine_loses_the_lease_and_the_others_need_not_watch_anew(
    control: ControlFolder, machines: Machines
) -> None:
    machines.on("first")
    own = acquire(control, "app-1", TTL_SECONDS)
    machines.on("second")
    with pytest.raises(LeaseHeldError):
        acquire(control, "app-2", TTL_SECONDS)
    machines.uptime += TTL_SECONDS - 1
    assert lease_is_live(control, own, 0.0)
    machines.uptime += 2
    assert not lease_is_live(control, own, 0.0)
    machines.on("third")
    taken = acquire(control, "app-3", TTL_SECONDS)
    assert taken.epoch == own.epoch + 1
    machines.on("first")
    with pytest.raises(LeaseLostError):
        renew(control, own)


def test_a_sign_of_life_takes_back_what_was_said_of_its_silence(control: ControlFolder, machines: Machines) -> None:
    machines.on("first")
    own = acquire(control, "app-1", TTL_SECONDS)
    machines.on("second")
    assert lease_is_live(control, own, 0.0)
    machines.uptime += TTL_SECONDS + 1
    assert not lease_is_live(control, own, 0.0)
    machines.on("first")
    renewed = renew(control, own)
    machines.on("third")
    assert lease_is_live(control, renewed, 0.0)
    with pytest.raises(LeaseHeldError):
        acquire(control, "app-3", TTL_SECONDS)


BROKEN = [
    Fault("disconnect", methods=("PUT",), after_effect=True),
    Fault("status", methods=("PUT",), after_effect=True),
    slow_down(methods=("PUT",), after_effect=True),
    slow_down(methods=("PUT",)),
    Fault("half body", methods=("GET",)),
]


@pytest.mark.parametrize("fault", BROKEN, ids=lambda fault: f"{fault.kind} {fault.status} {fault.after_effect}")
@pytest.mark.parametrize("patience", ["asks again", "gives up"])
def test_a_write_whose_outcome_is_not_known_is_found_out(
    fault: Fault, patience: str, control: ControlFolder, s3_server: S3Server, request: pytest.FixtureRequest
) -> None:
    if patience == "gives up":
        request.getfixturevalue("impatient")
    change_desired(control, "running")
    number = s3_server.faults.add(fault)
    try:
        own = acquire(control, "app", TTL_SECONDS)
    except ObjectStoreUnavailableError:
        assert not fault.after_effect and patience == "gives up"
        own = acquire(control, "app", TTL_SECONDS)
    assert s3_server.faults.hits(number) == 1
    assert (read_lease(control), own.epoch) == (own, 1)
    s3_server.faults.clear()
    if fault.after_effect:
        s3_server.faults.add(fault)
        assert renew(control, own).heartbeat_at > own.heartbeat_at
        s3_server.faults.add(fault)
        change_desired(control, "running", restart=True)
        assert read_desired(control).generation == 1


def test_a_store_that_is_away_is_said_to_be_and_comes_back(
    control: ControlFolder, s3_server: S3Server, impatient: None
) -> None:
    own = acquire(control, "app", TTL_SECONDS)
    s3_server.faults.go_away()
    with pytest.raises(ConnectionError):
        renew(control, own)
    s3_server.faults.come_back()
    assert renew(control, own).epoch == own.epoch


def used(key: AccessKey, monkeypatch: pytest.MonkeyPatch) -> AccessKey:
    """Have the state's bucket opened with a key from now on."""
    monkeypatch.setenv(KEY_ID, key.access_key_id)
    monkeypatch.setenv(SECRET, key.secret_access_key)
    location._open_bucket.cache_clear()
    return key


def test_keys_that_end_are_refused_and_new_ones_taken(
    control: ControlFolder, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = used(s3_server.put_access_key(AccessKey("old-key", "secret-of-old")), monkeypatch)
    own = acquire(control, "app", TTL_SECONDS)
    s3_server.remove_access_key(old.access_key_id)
    with pytest.raises(ObjectStoreRefusedError):
        renew(control, own)
    monkeypatch.setenv(KEY_ID, s3_server.access_key.access_key_id)
    monkeypatch.setenv(SECRET, s3_server.access_key.secret_access_key)
    monkeypatch.setattr(location, "REOPEN_SECONDS", 0.001)  # the time after which keys are read again
    assert renew(control, own).epoch == own.epoch


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda control, own: renew(control, own), id="get"),
        pytest.param(lambda control, own: control.progress.write_text("{}"), id="put"),
        pytest.param(lambda control, own: list(control.shared.glob("*")), id="list"),
        pytest.param(lambda control, own: control.lease.exists(), id="head"),
    ],
)
def test_a_token_that_has_expired_is_refused_and_named(
    control: ControlFolder,
    s3_server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[ControlFolder, Lease], object],
    request: pytest.FixtureRequest,
) -> None:
    key = used(s3_server.put_access_key(AccessKey("temporary-key", "secret-of-temporary")), monkeypatch)
    own = acquire(control, "app", TTL_SECONDS)
    s3_server.put_access_key(replace(key, expires_at=time.time() - 1))
    with pytest.raises(ObjectStoreRefusedError) as refused:
        ask(control, own)
    assert not passes(refused.value)
    # The answer to a HEAD has no body that could name it.
    assert "ExpiredToken" in str(refused.value) or request.node.callspec.id == "head"
    s3_server.put_access_key(key)
    ask(control, own)


@pytest.mark.parametrize(("status", "code"), [(400, "AuthorizationHeaderMalformed"), (301, "PermanentRedirect")])
def test_another_region_is_refused_and_named(control: ControlFolder, s3_server: S3Server, status: int, code: str) -> None:
    s3_server.faults.add(Fault("status", status=status, code=code, count=None))
    with pytest.raises(ObjectStoreRefusedError, match=code if status == 400 else "redirect"):
        read_lease(control)


def test_a_right_that_is_missing_to_delete_is_refused(
    control: ControlFolder, s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rights = (Permission(("s3:GetObject", "s3:PutObject", "s3:ListBucket"), f"{s3_bucket}/"),)
    used(s3_server.put_access_key(AccessKey("keeps-all", "secret-of-keeper", permissions=rights)), monkeypatch)
    write_text(control.progress, "{}")
    with pytest.raises(ObjectStoreRefusedError, match="AccessDenied") as refused:
        control.progress.unlink()
    assert not passes(refused.value)


def test_a_request_that_came_too_slowly_passes(control: ControlFolder, s3_server: S3Server) -> None:
    own = acquire(control, "app", TTL_SECONDS)
    s3_server.faults.add(Fault("status", methods=("PUT",), status=400, code="RequestTimeout", count=None))
    with pytest.raises(ObjectStoreUnavailableError) as away:
        renew(control, own)
    assert passes(away.value)


def test_a_lock_of_a_machine_that_died_is_taken(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(control.repair.with_name("repair.lock"), '{"holder": "process 1 on first", "id": "x", "signs": 7}')
    monkeypatch.setattr("lakebound.control.shared_lock.SILENT_SECONDS", SILENT_SECONDS / 10)
    with locked(control.repair, 10.0):
        pass


def test_a_lock_is_kept_by_its_signs_of_life(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebound.control.shared_lock._SIGN_SECONDS", 0.2)
    monkeypatch.setattr("lakebound.control.shared_lock.SILENT_SECONDS", 2.0)
    with locked(control.repair, 1.0), locked_if_free(control.repair) as is_mine:
        assert not is_mine


def test_a_turn_is_given_when_the_request_is_seen_to_change(control: ControlFolder) -> None:
    clock = [100.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    give = GiveTurns(control, monotonic=lambda: clock[0], sleep=sleep)
    moved = threading.Event()
    ask = AskForTurn(control, "delta:shop.orders")

    def looks() -> float:
        """Look as often as a stream that commits, until the look is answered."""
        clock[0] += 2.5
        give("delta:shop.orders", moved.is_set)
        watched = next(iter(give._watched.values()))
        watched._looking.result(10)  # type: ignore[union-attr]
        return give("delta:shop.orders", moved.is_set)

    assert looks() == 0.0
    ask()
    assert looks() == pytest.approx(1.5, abs=0.1)
    clock[0] += 60
    assert looks() == 0.0, "the same request, seen again, is no new one"
    ask.end()
    assert looks() == 0.0 and not control.turn("delta:shop.orders").exists()


def test_pipelines_are_known_by_their_state(
    s3_server: S3Server, s3_bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in tell_state(s3_server, s3_bucket, tmp_path / "pipelines").items():
        monkeypatch.setenv(name, value)
    for name in ("orders", "orders_eu", "returns"):
        for number in range(3):
            write_text(ControlFolder(tmp_path, name).incidents / f"{number}.json", "{}")
    assert names_of_pipelines(tmp_path) == ["orders", "orders_eu", "returns"]
    assert ControlFolder(tmp_path, "orders").exists() and not ControlFolder(tmp_path, "order").exists()
    assert not list(tmp_path.glob("pipelines/orders*"))
    # What is wrong with no single pipeline is known to all machines, and is not a pipeline.
    settings = load_settings()
    note_health_late(replace(settings, home=tmp_path / "triggerer"), 30)
    found, unreadable = read_sources(watch_folder(replace(settings, home=tmp_path / "worker")))
    assert [one.pipeline for one in found] == ["*"] and not unreadable
    assert names_of_pipelines(tmp_path) == ["orders", "orders_eu", "returns"]


@pytest.mark.parametrize("address", ["/shared", "s3://bucket", "gs://bucket/state", "s3://key@bucket/state", "s3://b/s?x=1"])
def test_an_address_that_means_nothing_is_refused(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LAKEBOUND_STATE", address)
    with pytest.raises(SettingError, match="LAKEBOUND_STATE"):
        ControlFolder(tmp_path, "orders")


def test_a_checkpoint_that_another_machine_may_have_is_not_called_lost(s3_server: S3Server, tmp_path: Path) -> None:
    shared = shared_control(s3_server, s3_server.new_bucket(), tmp_path / "a")
    assert read_scratch(shared, "orders-g0-1").exists is None
    shared.checkpoint("orders-g0-1").mkdir(parents=True)
    assert read_scratch(shared, "orders-g0-1").exists is True
    assert read_scratch(ControlFolder(tmp_path / "b", "orders"), "orders-g0-1").exists is False
