"""When a batch has further rounds, and when Spark is to plan the next one. What has come is a list of answers."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakebound.ledger.marks import NextOffsets
from lakebound_spark.stream import rounds
from lakebound_spark.stream.rounds import Rounds

LIMIT = 5_000
PLANNED = {"orders": {0: 10, 1: 0}}


class Arrivals:
    """A lander whose driver has these next offsets of partition 0, one after the other; then there are no more answers."""

    def __init__(self, *ends: int | None) -> None:
        self.ends = list(ends)

    def arrived(self, position: NextOffsets, wait_seconds: float) -> NextOffsets | None:
        assert wait_seconds <= 1, "an end that is asked for has to wait"
        end = self.ends.pop(0)
        return None if end is None else {"orders": {**position["orders"], 0: end}}


def run_of(freshness: str = "0ms", until: object = None, other_targets: Iterable[str] = ("topic:clean",)) -> Any:
    limits = SimpleNamespace(max_records_per_batch=LIMIT)
    return SimpleNamespace(
        freshness=freshness, until=until, spec=SimpleNamespace(other_targets=tuple(other_targets), limits=limits)
    )


def landed(arrivals: Arrivals, run: Any = None, most_rounds: int = 9, planned: int = 10) -> list[int]:
    """Return up to where each round has landed."""
    positions: list[NextOffsets] = [PLANNED]
    found = Rounds(run or run_of(), cast(Any, arrivals))
    rounds_of = found.after({"orders": {0: planned, 1: 0}}, lambda: positions[-1], lambda: len(positions) <= most_rounds)
    for ends in rounds_of:
        positions.append(ends)
    return [position["orders"][0] for position in positions[1:]]


def test_what_comes_lands_until_the_driver_does_not_read() -> None:
    assert landed(Arrivals(12, 12, 40, 3_000, None)) == [12, 40, 3_000]


@pytest.mark.parametrize("run", [run_of("250ms"), run_of("available_now"), run_of(until=object()), run_of(other_targets=())])
def test_there_are_none_where_spark_has_to_say_when_or_there_are_only_tables(run: Any) -> None:
    assert landed(Arrivals(), run) == []


def test_a_backlog_is_left_to_spark() -> None:
    assert landed(Arrivals(12, 12 + LIMIT)) == [12]


def test_spark_is_never_left_further_behind_than_one_of_its_batches_and_a_round_reach() -> None:
    assert landed(Arrivals(3_000, 6_000)) == [3_000, 6_000]
    assert landed(Arrivals(), planned=10 - LIMIT) == [], "what landed before counts"


def test_an_end_that_is_asked_for_ends_them() -> None:
    assert landed(Arrivals(12, 14), most_rounds=2) == [12, 14]
    assert landed(Arrivals(), most_rounds=0) == []


def test_spark_plans_a_batch_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100, 4))
    monkeypatch.setattr(rounds.time, "monotonic", lambda: next(clock))
    assert landed(Arrivals(12, 14, 16)) == [12, 14]
