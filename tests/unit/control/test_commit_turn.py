"""Turns at committing: a slow commit gets through, the stream loses little, and a left-over file costs next to nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn, GiveTurns

TABLE = "iceberg:shop.orders"


class Clock:
    """Time that passes only when somebody sleeps; ``at`` has something happen meanwhile."""

    def __init__(self) -> None:
        self.now = 0.0
        self.at: dict[float, AskForTurn] = {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for moment in [moment for moment in self.at if moment <= self.now]:
            self.at.pop(moment).end()


def nobody() -> bool:
    """Nobody has committed to the table."""
    return False


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def test_nobody_asks_and_nothing_waits(control: ControlFolder) -> None:
    clock = Clock()
    assert GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)(TABLE, nobody) == 0.0 == clock.now


def test_the_stream_waits_until_the_other_is_through(control: ControlFolder) -> None:
    clock, ask = Clock(), AskForTurn(control, TABLE)
    give = GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)
    ask()
    clock.at[0.4] = ask
    assert give("delta:shop.orders", nobody) == 0.0, "another table's commits go on"
    assert give(TABLE, nobody) == pytest.approx(0.4, abs=0.01)
    assert give(TABLE, nobody) == 0.0


def test_a_turn_that_was_too_short_makes_the_next_longer_within_a_twentieth_of_the_time(control: ControlFolder) -> None:
    clock, ask, turns = Clock(), AskForTurn(control, TABLE), list[float]()
    give = GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)
    while clock.now < 1200:
        ask()
        turns.append(give(TABLE, nobody))
        clock.now += 0.1
    lengths = [turn for turn in turns if turn]
    assert lengths[:3] == pytest.approx([1.5, 3, 6], abs=0.01)
    assert all(turn < 6.01 for turn in turns), "never longer"
    assert 0.04 * 1200 < sum(turns) < 0.06 * 1200


def test_the_turn_after_one_that_was_long_enough_is_short_again(control: ControlFolder) -> None:
    clock, ask = Clock(), AskForTurn(control, TABLE)
    give = GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)
    lengths = []
    for is_through in (nobody, lambda: clock.now > 101, nobody):
        ask()
        lengths.append(give(TABLE, is_through))
        clock.now = 100 * len(lengths)
    assert lengths == pytest.approx([1.5, 1, 1.5], abs=0.02)


def test_a_turn_is_over_as_soon_as_the_others_commit_is_there(control: ControlFolder) -> None:
    clock, ask = Clock(), AskForTurn(control, TABLE)
    give = GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)
    ask()
    assert give(TABLE, lambda: clock.now > 0.2) == pytest.approx(0.2, abs=0.01)
    assert control.turn(TABLE).exists(), "it has not said yet that it is through"


def test_a_request_that_was_left_behind_is_none(control: ControlFolder) -> None:
    clock, ask = Clock(), AskForTurn(control, TABLE)
    ask()
    for seconds in (-11, 11):
        stamp = time.time() + seconds
        os.utime(control.turn(TABLE), (stamp, stamp))
        assert GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)(TABLE, nobody) == 0.0


def test_what_fails_ends_a_turn_and_nothing_else(control: ControlFolder) -> None:
    clock, ask = Clock(), AskForTurn(control, TABLE)
    give = GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)
    ask()
    assert give(TABLE, lambda: bool(1 / 0)) == 0.0, "a catalog that does not answer"
    ask.end()
    control.turn(TABLE).parent.rmdir()
    control.turn(TABLE).parent.write_text("a file where the folder should be")
    ask()
    assert give(TABLE, nobody) == 0.0
    ask.end()


def test_a_turn_ends_with_its_context_also_where_that_fails(control: ControlFolder) -> None:
    with pytest.raises(ZeroDivisionError), AskForTurn(control, TABLE) as ask:
        ask()
        assert control.turn(TABLE).exists()
        raise ZeroDivisionError
    assert not control.turn(TABLE).exists()
