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


def test_it_waits_a_second_and_a_half_at_most_and_a_twentieth_of_its_time(control: ControlFolder) -> None:
    clock, ask, waited = Clock(), AskForTurn(control, TABLE), 0.0
    give = GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)
    while clock.now < 600:
        ask()
        turn = give(TABLE, nobody)
        assert turn < 1.51
        waited += turn
        clock.now += 0.1
    assert 0.04 * 600 < waited < 0.06 * 600


def test_a_turn_is_over_as_soon_as_the_others_commit_is_there(control: ControlFolder) -> None:
    clock, ask = Clock(), AskForTurn(control, TABLE)
    give = GiveTurns(control, monotonic=lambda: clock.now, sleep=clock.sleep)
    ask()
    assert give(TABLE, lambda: clock.now > 0.2) == pytest.approx(0.2, abs=0.01)
    assert control.turn(TABLE).exists(), "it has not said yet that it is through"


def test_a_request_that_was_left_behind_is_none(control: ControlFolder) -> None:
    clock, ask = Clock(), AskForTurn(control, TABLE)
    ask()
    for seconds in (-10, 10):
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
