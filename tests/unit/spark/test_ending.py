"""The end of an application is written down when its state takes it again; without a word it would count as a kill."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.errors import MissingSecretError
from lakebound.spec.state_store import StateStoreSpec
from lakebound_spark.stream import ending
from lakebound_spark.stream.ending import write_down
from lakebound_spark.stream.stop_signal import StopSignal

AWAY = ConnectionError("no answer")
REFUSED = PermissionError("ExpiredToken")
NO_KEY = MissingSecretError("store.secret_access_key", "file /run/key")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ControlFolder:
    """State in a folder."""
    monkeypatch.setattr(ending, "_AGAIN_SECONDS", 0.01)
    return ControlFolder(tmp_path, "orders")


@pytest.fixture
def shared(folder: ControlFolder) -> ControlFolder:
    """State in a store."""
    return ControlFolder(folder.home, "orders", StateStoreSpec(location="s3://bucket/state"))


class Written:
    """Writes, after errors."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.attempts = 0

    def __call__(self) -> None:
        self.attempts += 1
        if self._errors:
            raise self._errors.pop(0)


def test_it_is_tried_until_the_state_takes_it(folder: ControlFolder, shared: ControlFolder) -> None:
    for control, errors in ((folder, [AWAY] * 3), (shared, [AWAY, REFUSED, NO_KEY])):
        written = Written(*errors)
        write_down(written, control, threading.Event())
        assert written.attempts == 4


@pytest.mark.parametrize("error", [REFUSED, NO_KEY, ValueError("torn")])
def test_what_would_come_again_is_not_waited_for(folder: ControlFolder, error: Exception) -> None:
    written = Written(error)
    with pytest.raises(type(error)):
        write_down(written, folder, threading.Event())
    assert written.attempts == 1


def test_a_signal_ends_it_at_once(shared: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "_AGAIN_SECONDS", 600.0)
    stop, written = StopSignal(), Written(AWAY, AWAY)
    stop.set("failed", "the state is away", AWAY)
    threading.Timer(0.1, stop.on_signal, [signal.SIGTERM]).start()
    with pytest.raises(ConnectionError):
        write_down(written, shared, stop.signalled)
    assert written.attempts == 1
    assert stop.request is not None and stop.request.verdict == "failed", "the first reason counts"


def test_it_is_not_tried_for_ever(shared: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "WRITE_DOWN_SECONDS", 0.05)
    written = Written(*[AWAY] * 100_000)
    with pytest.raises(ConnectionError):
        write_down(written, shared, threading.Event())
    assert written.attempts > 1
