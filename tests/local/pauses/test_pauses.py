"""Each actor is suspended before each of its file operations while the others run: nothing is lost, hidden or doubled."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import pytest
from tests.support.pauses.actors import FORMATS, makers, name_of
from tests.support.pauses.form import ALL, WorldMaker, gates, kept, make_world_fixture, seeded, tell  # noqa: F401
from tests.support.pauses.runs import Case, Found, double_pauses, run_cases, single_pauses

_PER_PAIR = 1
_SAMPLED = 500 if ALL else 4
ROLES = ("stream", "second", "takeover", "compact", "cleaning", "restore", "rewind")
CASES = [*((kind, role) for role in ROLES for kind in FORMATS), ("iceberg", "rewrite")]


def some(cases: Iterable[Case], count: int, chance: random.Random) -> list[Case]:
    """Return all cases in the long form, else a few."""
    listed = list(cases)
    return listed if ALL else chance.sample(listed, min(count, len(listed)))


@pytest.mark.parametrize(("kind", "role"), CASES)
def test_one_is_suspended_anywhere_while_another_runs_to_its_end(kind: str, role: str, make_world: WorldMaker) -> None:
    world, first, found = make_world(kind, "plain"), name_of(role, kind), Found()
    passed = gates(world)
    others = [*makers(kind)]
    for other in others if ALL else others[len(role) % 2 :: 2]:  # shortly, each actor beside every second one
        chosen = some(single_pauses((first, other), passed[first]), _PER_PAIR, seeded(kind, first, other))
        found.add(run_cases(world, chosen, keep=kept()))
    tell(f"{kind}, {first} suspended", found)
    found.assert_clean()


@pytest.mark.parametrize("kind", FORMATS)
def test_two_are_suspended_and_go_on_in_any_order(kind: str, make_world: WorldMaker) -> None:
    world, chance, found = make_world(kind, "plain"), seeded(kind, "two"), Found()
    passed = gates(world)
    for _ in range(_SAMPLED):
        names = chance.choices(list(makers(kind)), k=2)
        cases = double_pauses(names, [passed[name] for name in names], 1, chance)
        found.add(run_cases(world, cases, keep=kept()))
    tell(f"{kind}, two suspended", found)
    found.assert_clean()


@pytest.mark.parametrize("kind", FORMATS)
def test_two_are_suspended_while_a_third_runs_to_its_end(kind: str, make_world: WorldMaker) -> None:
    world, chance, found = make_world(kind, "plain"), seeded(kind, "three"), Found()
    passed = gates(world)
    for _ in range(_SAMPLED):
        names = chance.choices(list(makers(kind)), k=3)
        cases = double_pauses(names, [passed[name] for name in names], 1, chance)
        found.add(run_cases(world, cases, keep=kept()))
    tell(f"{kind}, three actors", found)
    found.assert_clean()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_table_with_a_fork_in_its_history(kind: str, make_world: WorldMaker) -> None:
    """Rewound once already: a kept snapshot shares files with expired ones on the branch that was left."""
    world, chance, found = make_world(kind, "forked"), seeded(kind, "fork"), Found()
    passed = gates(world)
    names = ("stream", "restore", name_of("cleaning", kind), "rewind")
    for pair in [*itertools.permutations(names, 2)][:: 1 if ALL else 2]:
        found.add(run_cases(world, some(single_pauses(pair, passed[pair[0]]), _PER_PAIR, chance), keep=kept()))
    tell(f"{kind}, forked history", found)
    found.assert_clean()
