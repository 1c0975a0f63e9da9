"""The threads beside a stream go on whatever they meet: nobody would renew the lease, or see that it is lost."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support.waiting import wait_until

from lakebound.control.desired import change_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import acquire
from lakebound.errors import LakeboundError, LeaseLostError, MissingSecretError
from lakebound.ledger.topics import TopicFacts
from lakebound_spark.stream import signs
from lakebound_spark.stream.signs import LagWatch, ProgressBoard, SignsOfLife
from lakebound_spark.stream.stop_signal import StopSignal

NO_KEY = MissingSecretError("store.secret_access_key", "file /run/key")
"""As of a file that is empty for a moment while somebody writes it anew."""


class Recorder:
    """Counts nothing, and says whether it was told to write no more."""

    is_closed = False

    def tick(self, *_: object) -> None:
        return

    def close(self) -> None:
        self.is_closed = True


class Calls:
    """Stands before a function and raises errors in the place of its first answers."""

    def __init__(self, function: Any, *errors: Exception) -> None:
        self._function, self._errors = function, list(errors)
        self.answered = 0

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._errors:
            raise self._errors.pop(0)
        answer = self._function(*arguments, **named)
        self.answered += 1
        return answer


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The orders of an application whose threads look a hundred times a second."""
    monkeypatch.setattr(signs, "PROGRESS_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr(signs, "LAG_INTERVAL_SECONDS", 0.01)
    spec = SimpleNamespace(pipeline="orders")
    return SimpleNamespace(control=ControlFolder(tmp_path, "orders"), spec=spec, app_id="app-1", generation=0, source_hash="")


@pytest.fixture
def board(run: Any) -> ProgressBoard:
    return ProgressBoard(run, epoch=1)


def signs_of(run: Any, board: ProgressBoard, stop: StopSignal, recorder: Recorder) -> SignsOfLife:
    lease = acquire(run.control, run.app_id, 30.0)
    recorders = (cast(Any, recorder), cast(Any, recorder), cast(Any, recorder))
    return SignsOfLife(run, lease, board, stop, *recorders)


@pytest.mark.parametrize("error", [NO_KEY, ValueError("torn"), PermissionError("expired"), RuntimeError("no more threads")])
@pytest.mark.parametrize("asked", ["renew", "read_desired", "write_progress"])
def test_whatever_fails_is_tried_again(
    run: Any, board: ProgressBoard, monkeypatch: pytest.MonkeyPatch, asked: str, error: Exception
) -> None:
    stop, calls = StopSignal(), Calls(getattr(signs, asked), error, error)
    monkeypatch.setattr(signs, asked, calls)
    watched = signs_of(run, board, stop, Recorder())
    watched.start()
    wait_until(lambda: calls.answered > 1, 10, f"the third {asked}", poll_seconds=0.01)
    assert stop.request is None
    stop_and_end(run, stop, watched)


def stop_and_end(run: Any, stop: StopSignal, watched: SignsOfLife) -> None:
    """Ask for the end, and see it seen."""
    change_desired(run.control, "stopped", reason="enough")
    wait_until(stop.is_set, 10, "the end that is asked for", poll_seconds=0.01)
    watched.end()


def test_what_keeps_the_lease_from_being_renewed_does_not_keep_a_request_from_being_seen(
    run: Any, board: ProgressBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = StopSignal()
    monkeypatch.setattr(signs, "renew", Calls(None, *[NO_KEY] * 100_000))
    watched = signs_of(run, board, stop, Recorder())
    watched.start()
    stop_and_end(run, stop, watched)


def test_a_lease_that_is_lost_still_ends_the_application(
    run: Any, board: ProgressBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, recorder = StopSignal(), Recorder()
    monkeypatch.setattr(signs, "renew", Calls(None, NO_KEY, LeaseLostError("orders", 1, 2)))
    watched = signs_of(run, board, stop, recorder)
    watched.start()
    wait_until(stop.is_set, 10, "its end", poll_seconds=0.01)
    watched.end()
    assert stop.request is not None and stop.request.verdict == "superseded" and recorder.is_closed


@pytest.mark.parametrize("error", [NO_KEY, OSError("the file of a certificate"), LakeboundError("no answer")])
def test_the_lag_is_looked_at_again(board: ProgressBoard, run: Any, error: Exception) -> None:
    topics = Calls(lambda names: {name: TopicFacts("id", {0: 0}, {0: 7}) for name in names}, error, error)
    board.change(high_water_marks={"orders": {0: 4}})
    watch = LagWatch(cast(Any, SimpleNamespace(topics=topics)), ["orders"], board)
    watch.start()
    wait_until(lambda: board.latest.lag_records == 3, 10, "the lag", poll_seconds=0.01)
    watch.end()


def test_nothing_is_said_to_be_complete_while_a_table_has_gaps(board: ProgressBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"orders": TopicFacts("id", {0: 0}, {0: 7})}
    watch = LagWatch(cast(Any, SimpleNamespace(topics=lambda names: ends)), ["orders"], board)
    monkeypatch.setattr(signs, "LAG_INTERVAL_SECONDS", 0.01)
    board.change(high_water_marks={"orders": {0: 7}}, has_gaps=True)
    watch.start()
    wait_until(lambda: board.latest.lag_records == 0, 10, "the lag", poll_seconds=0.01)
    assert board.latest.complete_until is None
    board.change(has_gaps=False)
    wait_until(lambda: board.latest.complete_until is not None, 10, "everything", poll_seconds=0.01)
    watch.end()
