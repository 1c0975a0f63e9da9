"""Rounds of alerts while no disk takes the state: told, and told again once an hour at most."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebound.alerts import store as alert_store
from lakebound.alerts.model import Message, MessageKind, ToldAlert
from lakebound.alerts.round import run_round
from lakebound.alerts.routes import ChannelSpec
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.control import fallback_files
from lakebound.control.findings import Severity
from lakebound.settings import Settings, load_settings

HOUR = 3600 * 480_000
"""Epoch seconds at which an hour begins."""
TOLD = ToldAlert(id="a", source="doctor", cause="c", severity=Severity.WARNING, what="w", since=0.0)


class Disk:
    """A disk of the state that may be full, and a machine without a RAM disk."""

    def __init__(self) -> None:
        self.is_full = True


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    made, write = Disk(), fallback_files.write_json

    def write_json(path: Path, body: object, *, durable: bool = False) -> None:
        if made.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, body, durable=durable)

    monkeypatch.setattr(fallback_files, "write_json", write_json)
    monkeypatch.setattr(fallback_files, "ram_disks", list)
    yield made
    alert_store._in_this_process.clear()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "pipelines").mkdir()
    return load_settings({"LAKEBOUND_HOME": str(tmp_path / "home"), "LAKEBOUND_PIPELINES": str(tmp_path / "pipelines")})


class Hook:
    """A channel that takes everything."""

    def __init__(self) -> None:
        self.got: list[Message] = []

    def send(self, _: ChannelSpec, message: Message) -> None:
        self.got.append(message)

    @property
    def kinds(self) -> list[MessageKind]:
        return [one.kind for one in self.got]


def round_of_a_new_process(settings: Settings, hook: Hook, at: float) -> None:
    run_round(settings, hook.send, lambda: at)
    alert_store._in_this_process.clear()  # as the end of the process does


def test_processes_that_live_for_one_round_tell_it_once_an_hour(settings: Settings, disk: Disk) -> None:
    hook = Hook()
    for minute in range(-10, 130, 5):
        round_of_a_new_process(settings, hook, HOUR + minute * 60 + 2)
    assert [one.at for one in hook.got] == [HOUR + 2, HOUR + 3602, HOUR + 7202]
    assert {one.alerts[0].cause for one in hook.got} == {"unwritable"}


def test_a_process_that_lives_on_tells_it_once(settings: Settings, disk: Disk) -> None:
    hook = Hook()
    for minute in range(1, 180, 4):
        run_round(settings, hook.send, lambda at=HOUR + minute * 60 + 2: at)
    assert hook.kinds == [MessageKind.OPENED]
    assert "No space left on device" in hook.got[0].alerts[0].what and hook.got[0].alerts[0].runbook == "disk-full"
    disk.is_full = False
    for minute in range(180, 185):
        run_round(settings, hook.send, lambda at=HOUR + minute * 60 + 2: at)
    assert hook.kinds == [MessageKind.OPENED, MessageKind.RESOLVED]
    assert AlertStore(settings.home).file.exists() and alert_store._in_this_process == {}


def test_what_was_queued_before_is_not_sent_each_minute(settings: Settings, disk: Disk) -> None:
    hook = Hook()
    queued = Message(id="m1", kind=MessageKind.TEST, pipeline="orders", at=HOUR, alerts=(TOLD,))
    disk.is_full = False
    AlertStore(settings.home).write(AlertState().queued("lakebound_webhook", queued))
    disk.is_full = True
    for minute in range(1, 50, 4):
        round_of_a_new_process(settings, hook, HOUR + minute * 60 + 2)
    assert hook.got == []
    disk.is_full = False
    round_of_a_new_process(settings, hook, HOUR + 51 * 60)
    assert [one.id for one in hook.got] == ["m1"], "and it is not lost"


def test_who_only_looks_moves_no_file(tmp_path: Path) -> None:
    store = AlertStore(tmp_path)
    assert store.look() == AlertState()
    store.folder.mkdir()
    store.file.write_text("{")
    assert store.look() is None
    assert store.file.read_text() == "{"
