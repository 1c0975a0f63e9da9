"""After an idle flush that failed no batch lands: it would stand behind a commit that some tables may have and others not."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from lakebound_spark.stream.query import LandingStream
from lakebound_spark.stream.stop_signal import StopSignal


class Query:
    """One that goes on."""

    isActive = True


def test_a_batch_that_waits_while_a_flush_fails_does_not_land() -> None:
    stream: Any = LandingStream.__new__(LandingStream)
    landed: list[bool] = []
    begun, waiting = threading.Event(), threading.Event()

    def flush(older_than_seconds: float = 0.0) -> None:
        begun.set()
        assert waiting.wait(30)
        raise OSError("the store is away")

    def batch() -> None:
        assert begun.wait(30)
        waiting.set()
        with stream._landing(stream._ending) as may_land:
            landed.append(may_land)

    limits = SimpleNamespace(idle_entry_seconds=0.0)
    stream._opened = SimpleNamespace(
        lander=SimpleNamespace(flush=flush), opening=SimpleNamespace(schemas=SimpleNamespace(has_newer=False, away=None))
    )
    stream._run = SimpleNamespace(spec=SimpleNamespace(limits=limits))
    stream._told = SimpleNamespace(show_missing_schemas=lambda away: None, show_recent=lambda: None)
    stream._stop, stream._held, stream._error = StopSignal(), {}, None
    stream._batch_lock, stream._ending = threading.Lock(), threading.Event()
    other = threading.Thread(target=batch)
    other.start()
    with pytest.raises(OSError):
        stream._watch(Query())
    other.join(30)
    assert landed == [False]
