"""A lease of another machine is judged by whether its sign changes, whatever the two clocks say."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.control import lease as leases
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import Lease, acquire, lease_is_live
from lakebound.control.sights import Sight, look, unchanged_seconds
from lakebound.errors import LeaseHeldError

TTL_SECONDS = 30.0


@pytest.fixture
def uptime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """The time since this machine was started, and a memory of its own."""
    clock = [1_000.0]
    monkeypatch.setattr("lakebound.control.sights._uptime_seconds", lambda: clock[0])
    monkeypatch.setattr("lakebound.control.fallback_files.ram_disks", lambda: [tmp_path / "ram"])
    (tmp_path / "ram").mkdir()
    return clock


def lease(control: ControlFolder, *, skew_seconds: float, boot_id: str | None = "another boot") -> Lease:
    """Return a lease of another machine, whose clock differs from ours."""
    now = time.time() + skew_seconds
    return Lease(
        epoch=3,
        app_id="orders-g1-x",
        host="elsewhere",
        pid=1,
        pid_started_at=now,
        acquired_at=now,
        heartbeat_at=now,
        ttl_seconds=TTL_SECONDS,
        boot_id=boot_id,
    )


@pytest.mark.parametrize("skew_seconds", [-86_400.0, -60.0, 0.0, 60.0, 86_400.0])
def test_clocks_that_differ_do_not_matter(tmp_path: Path, uptime: list[float], skew_seconds: float) -> None:
    control = ControlFolder(tmp_path, "orders")
    held = lease(control, skew_seconds=skew_seconds)
    assert lease_is_live(control, held, time.time()), "the first look tells nothing"
    uptime[0] += TTL_SECONDS
    assert lease_is_live(control, held, time.time())
    renewed = held.model_copy(update={"heartbeat_at": held.heartbeat_at + 1})
    uptime[0] += 1
    assert lease_is_live(control, renewed, time.time())
    uptime[0] += TTL_SECONDS + 1
    assert not lease_is_live(control, renewed, time.time()), "it has not changed for longer than it lasts"
    renewed = renewed.model_copy(update={"heartbeat_at": held.heartbeat_at - 500})
    assert lease_is_live(control, renewed, time.time()), "a clock that was set back gives signs of life, too"


def test_a_lease_of_this_machine_is_judged_by_its_clock(tmp_path: Path, uptime: list[float]) -> None:
    control = ControlFolder(tmp_path, "orders")
    own = lease(control, skew_seconds=-60, boot_id=leases.own_space().boot_id)
    assert not lease_is_live(control, own, time.time())
    assert not lease_is_live(control, lease(control, skew_seconds=-60, boot_id=None), time.time())
    assert not (tmp_path / "ram").joinpath(f"lakebound-{os.geteuid()}").exists()


def test_a_lease_that_was_given_back_is_not_alive(tmp_path: Path, uptime: list[float]) -> None:
    control = ControlFolder(tmp_path, "orders")
    given_back = lease(control, skew_seconds=0).model_copy(update={"released": True})
    assert not lease_is_live(control, given_back, time.time())


def test_without_a_memory_the_clock_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebound.control.fallback_files.ram_disks", list)
    control = ControlFolder(tmp_path, "orders")
    assert unchanged_seconds(control.lease, "sign") is None
    assert lease_is_live(control, lease(control, skew_seconds=0), time.time())
    assert not lease_is_live(control, lease(control, skew_seconds=-60), time.time())


def test_a_machine_whose_clock_is_behind_keeps_its_lease(tmp_path: Path, uptime: list[float]) -> None:
    control = ControlFolder(tmp_path, "orders")
    leases.write_json(control.lease, lease(control, skew_seconds=-3_600).model_dump(), durable=True)
    with pytest.raises(LeaseHeldError):
        acquire(control, "another", TTL_SECONDS)
    uptime[0] += TTL_SECONDS + 1
    assert acquire(control, "another", TTL_SECONDS).epoch == 4


@given(looks=st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 100)), max_size=8))
def test_a_sight_begins_when_the_sign_was_first_seen(looks: list[tuple[str, float]]) -> None:
    sight: Sight | None = None
    now = 0.0
    since: float | None = None
    last: str | None = None
    for sign, later in looks:
        now += later
        sight = look(sight, sign, now)
        since, last = (now if sign != last else since), sign
        assert sight.sign == sign and sight.since == since


def test_a_machine_that_was_started_again_begins_anew() -> None:
    assert look(Sight(sign="a", since=500.0), "a", 20.0) == Sight(sign="a", since=20.0)
