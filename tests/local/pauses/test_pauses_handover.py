"""Maintenance hands its commits to a stream: each is made once or not at all, wherever either of them is suspended."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.support.pauses.actors import FORMATS, make_actors
from tests.support.pauses.file_operations import interposed
from tests.support.pauses.form import ALL, WorldMaker, kept, make_world_fixture, seeded, tell  # noqa: F401
from tests.support.pauses.interleaving import Turn, interleave
from tests.support.pauses.runs import Case, Found, run_cases
from tests.support.pauses.world import PausedWorld

from lakebound.control import handover

_SAMPLED = 1000 if ALL else 4
_THIRD = (None, "second", "takeover", "restore", "orphans")


@pytest.fixture(autouse=True)
def _few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Actors run one at a time: who looks for an answer again and again would never see one."""
    monkeypatch.setattr(handover, "_LOOKS_FOR_TAKER", 3)
    monkeypatch.setattr(handover, "_LOOKS_FOR_ANSWER", 3)


def gates_with_an_offer(world: PausedWorld, step: str) -> tuple[int, int]:
    """Return how many gates maintenance passes until its offer is there, and how many a stream passes that takes it."""
    with interposed(world.live), world.run():
        (alone,) = actors = make_actors(world, [step])
        interleave(actors, [])
        offered = next(number for number, gate in enumerate(alone.gates) if gate.endswith(".offered"))
    with interposed(world.live), world.run():
        actors = make_actors(world, [step, "taker"])
        interleave(actors, [Turn(0, offered + 1), Turn(1), Turn(0)])
        assert "taken" in world.notes and all(actor.error is None for actor in actors)
        return offered + 1, len(actors[1].gates)


def cases(step: str, offered: int, taking: int) -> Iterator[Case]:
    """Yield: maintenance has offered, the stream is suspended anywhere, perhaps a third runs, and both go on in any order."""
    for third in _THIRD:
        names = (step, "taker") if third is None else (step, "taker", third)
        between = () if third is None else (Turn(2),)
        for stop_at in range(taking + 1):
            for order in ((0, 1), (1, 0)):
                yield Case(names, (Turn(0, offered), Turn(1, stop_at), *between, *(Turn(number) for number in order)))


def sampled(found: list[Case], chance: random.Random) -> list[Case]:
    """Return all cases in the long form, else a few."""
    return found if ALL else chance.sample(found, min(_SAMPLED, len(found)))


@pytest.mark.parametrize(("kind", "step"), [("delta", "compact"), ("iceberg", "compact"), ("iceberg", "expire")])
def test_what_is_handed_over_is_committed_once_or_not_at_all(kind: str, step: str, make_world: WorldMaker) -> None:
    world = make_world(kind, "leased")
    offered, taking = gates_with_an_offer(world, step)
    chosen = sampled(list(cases(step, offered, taking)), seeded(kind, step, "handed over"))
    found = run_cases(world, chosen, keep=kept())
    tell(f"{kind}, {step} handed over", found)
    found.assert_clean()


@pytest.mark.parametrize("kind", FORMATS)
def test_maintenance_is_suspended_anywhere_while_the_stream_takes(kind: str, make_world: WorldMaker) -> None:
    world, found = make_world(kind, "leased"), Found()
    offered, _ = gates_with_an_offer(world, "compact")
    listed = [Case(("compact", "taker"), (Turn(0, stop_at), Turn(1), Turn(0))) for stop_at in range(offered + 20)]
    found = run_cases(world, sampled(listed, seeded(kind, "maintenance")), keep=kept())
    tell(f"{kind}, maintenance suspended beside a stream that takes", found)
    found.assert_clean()
