"""A lock among machines, on a store that does what it was asked and does not say so."""

from __future__ import annotations

import json
import threading
from typing import Any, cast

import pytest
from tests.support.waiting import wait_until

from lakebound.control import shared_lock as locks
from lakebound.control.shared_file import SharedFile
from lakebound.control.shared_lock import Refused, shared_lock
from lakebound.errors import MissingSecretError
from lakebound.storage.store import FileChangedError, Tagged


class FakeLocation:
    """One file of a store, whatever name it is asked for."""

    address = name = "repair"

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.errors: list[Exception] = []
        """Of the next requests; the first of them comes after its write took effect."""
        self._version = 0
        self._asked = threading.Lock()

    @property
    def parent(self) -> FakeLocation:
        return self

    def __truediv__(self, name: str) -> FakeLocation:
        return self

    def read_tagged(self) -> Tagged:
        with self._asked:
            self._fail()
            if self.content is None:
                raise FileNotFoundError(self.name)
            return Tagged(self.content, str(self._version))

    def put_new(self, content: bytes) -> None:
        with self._asked:
            if self.content is not None:
                raise FileExistsError(self.name)
            self._write(content)

    def replace(self, content: bytes, tag: str) -> str:
        with self._asked:
            if self.content is None or tag != str(self._version):
                raise FileChangedError(self.name)
            return self._write(content)

    def said(self) -> dict[str, Any]:
        """Return what stands in the file."""
        return cast(dict[str, Any], json.loads(self.content or b"{}"))

    def _write(self, content: bytes) -> str:
        self.content = content
        self._version += 1
        self._fail()
        return str(self._version)

    def _fail(self) -> None:
        if self.errors:
            raise self.errors.pop(0)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeLocation:
    """An empty store, for locks whose holders give signs often."""
    monkeypatch.setattr(locks, "_SIGN_SECONDS", 0.01)
    return FakeLocation()


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param([ConnectionError("no answer"), ConnectionError("no answer")], id="unheard, and not to be read"),
        pytest.param([ConnectionError("no answer"), ConnectionError("no answer")] * 2, id="twice"),
        pytest.param([PermissionError("expired")], id="refused when it was asked again"),
        pytest.param([MissingSecretError("store.secret_access_key", "a file")], id="without a key for a moment"),
    ],
)
def test_a_sign_that_took_effect_unheard_keeps_the_lock(store: FakeLocation, errors: list[Exception]) -> None:
    file = SharedFile(cast(Any, store))
    with shared_lock(file, 10.0) as refused:
        assert refused is None
        with store._asked:
            store.errors = list(errors)
        wait_until(lambda: not store.errors, 10, "the errors", poll_seconds=0.01)
        before = store.said()["signs"]
        wait_until(lambda: store.said()["signs"] > before + 2, 10, "more signs of life", poll_seconds=0.01)
    assert store.said()["holder"] == "", "others may take it at once"


def test_a_last_sign_that_took_effect_unheard_does_not_keep_others_out(store: FakeLocation) -> None:
    lock = locks._HeldLock(SharedFile(cast(Any, store)))
    assert lock.put(None)
    store.errors = [ConnectionError("no answer"), ConnectionError("no answer")]
    with pytest.raises(ConnectionError):
        lock.put(lock._found)
    lock._thread = threading.Thread(target=lambda: None)
    lock.start()
    lock.end()
    assert store.said()["holder"] == ""


def test_a_lock_that_somebody_else_took_is_not_taken_back(store: FakeLocation) -> None:
    lock = locks._HeldLock(SharedFile(cast(Any, store)))
    assert lock.put(None)
    taken = json.dumps({"holder": "process 1 on second", "id": "another", "signs": 1}).encode()
    store.replace(taken, store.read_tagged().tag)
    assert not lock.put(lock._found)
    assert store.content == taken
    with shared_lock(SharedFile(cast(Any, store)), 0.0) as refused:
        assert refused == Refused("process 1 on second")
