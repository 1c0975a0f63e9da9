"""The frame of every backfill, with a policy that lands numbers in a list: pieces, attempts, the record, and the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.tables.guests import without_waits
from tests.support.tables.transform_worlds import pipeline

from lakebound.control.desired import Desired, change_desired, request_stop
from lakebound.control.replay_result import PieceCounts, ReplayResult, TableLanded, read_result
from lakebound.errors import CommitUnknownError, LakeboundError
from lakebound.landing.run_spec import RunSpec
from lakebound.tables.places import Places
from lakebound_spark.backfill import job
from lakebound_spark.backfill.job import Backfill, CheckWanted

TABLE = "delta:shop.values"


@dataclass
class Landed:
    """A table of numbers; ``before`` happens before the how many-th attempt commits."""

    numbers: list[int] = field(default_factory=list)
    before: dict[int, Callable[[], None]] = field(default_factory=dict)
    attempts: int = 0
    looks: int = 0
    is_closed: bool = False

    def land(self, piece: Sequence[int], number: int) -> PieceCounts:
        self.attempts += 1
        for one in piece:
            if one not in self.numbers:
                self.numbers.append(one)
                self.before.pop(self.attempts, lambda: None)()
        return PieceCounts(read=len(piece), landed=len(piece))

    def look_again(self) -> None:
        self.looks += 1

    def landed(self) -> Mapping[str, TableLanded]:
        return {TABLE: TableLanded(commits=self.attempts, rows=len(self.numbers))}

    def close(self) -> None:
        self.is_closed = True


@dataclass(frozen=True)
class Numbers:
    """Lands the numbers from 0 on, three at a time."""

    orders: RunSpec
    landed: Landed
    most: int = 6
    is_trial: bool = False
    name: str = "count"

    def goes_on_held(self, hold: Desired) -> bool:
        return self.is_trial

    def begun(self) -> ReplayResult:
        return ReplayResult(app_id=self.orders.app_id)

    def alone(self, check_wanted: CheckWanted) -> AbstractContextManager[None]:
        return nullcontext()

    def finish(self) -> str:
        if self.landed.before.pop(0, None):
            raise LakeboundError("it is not all done")
        return ""

    def pieces(self) -> Sequence[Sequence[int]]:
        return [range(first, first + 3) for first in range(0, self.most, 3)]

    def open(self, session: Any, check_wanted: CheckWanted) -> Landed:
        return self.landed


@pytest.fixture
def orders(at: Places, monkeypatch: pytest.MonkeyPatch) -> RunSpec:
    monkeypatch.setattr(job, "make_session", lambda _: type("Session", (), {"stop": lambda self: None})())
    without_waits(monkeypatch)
    spec = pipeline(limits={"commit_attempts": 3})
    return RunSpec(spec=spec, places=at, app_id="count-1", freshness="available_now")


def moved_on() -> None:
    raise CommitUnknownError(TABLE, 1, "another was faster")


def test_a_piece_is_tried_again_and_counted_when_it_is_whole(orders: RunSpec) -> None:
    landed = Landed(before={2: moved_on})
    result = Backfill(orders, Numbers(orders, landed)).run()
    assert (result.state, result.chunks, result.chunks_done, result.read, result.landed) == ("completed", 2, 2, 6, 6)
    assert (landed.numbers, landed.attempts, landed.looks, landed.is_closed) == ([*range(6)], 3, 1, True)
    assert read_result(orders.control, "count-1", ReplayResult) == result


def test_one_that_fails_tells_its_commits_and_counts_no_half_piece(orders: RunSpec) -> None:
    landed = Landed(before={2: moved_on, 3: moved_on, 4: moved_on})
    result = Backfill(orders, Numbers(orders, landed)).run()
    assert (result.state, result.error_class, result.chunks_done, result.read) == ("failed", "CommitUnknownError", 1, 3)
    assert result.tables == {TABLE: TableLanded(commits=4, rows=6)} and landed.is_closed
    assert "another was faster" in result.reason


def test_what_is_asked_meanwhile_ends_it_before_the_next_piece_or_attempt(orders: RunSpec) -> None:
    def stop() -> None:
        request_stop(orders.control, "count-1", reason="test", by="test")

    def hold() -> None:
        change_desired(orders.control, "held", reason="audit")
        moved_on()

    result = Backfill(orders, Numbers(orders, landed := Landed(before={1: hold}))).run()
    assert (result.state, result.error_class, landed.attempts, landed.looks) == ("refused", "HeldError", 1, 0)
    trial = Backfill(orders, Numbers(orders, Landed(), is_trial=True)).run()
    assert trial.state == "completed", "a trial lands nothing"
    change_desired(orders.control, "running")
    result = Backfill(orders, Numbers(orders, landed := Landed(before={1: stop}))).run()
    assert (result.state, result.chunks_done, landed.numbers) == ("stopped", 1, [0, 1, 2])


@pytest.mark.parametrize("most", [0, 6])
def test_it_is_completed_only_if_the_policy_finds_all_done(orders: RunSpec, most: int) -> None:
    result = Backfill(orders, Numbers(orders, Landed(before={0: moved_on}), most=most)).run()
    assert (result.state, result.reason) == ("failed", "it is not all done")


def test_without_pieces_there_is_no_session(orders: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "make_session", moved_on)
    result = Backfill(orders, Numbers(orders, Landed(), most=0)).run()
    assert (result.state, result.chunks, result.tables) == ("completed", 0, {})
