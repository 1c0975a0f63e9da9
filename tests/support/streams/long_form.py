"""Tests that take long have a short form in ``make test``; other targets of the Makefile run them whole (tests/README.md)."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import pytest

LONG_FORM = os.environ.get("LAKEBOUND_CHAOS") == "full"

only_in_long_form = pytest.mark.skipif(not LONG_FORM, reason="only in the long form (tests/README.md)")

each_value_once = pytest.mark.each_value_once
"""Of a test with several parameters the short form takes as few cases as have each value of each parameter."""

Case = TypeVar("Case")


def examples(many: int) -> int:
    """Return how many generated examples a test tries: so many in the long form (``make test-generated``), else a quarter."""
    return many if LONG_FORM else max(1, many // 4)


def short_form(cases: Iterable[Case], values_of: Callable[[Case], Iterable[Hashable]]) -> list[Case]:
    """Return all cases in the long form, else few of them, in their order, that have each value of any of them.

    Values that few cases have so far come together before others: of two parameters with three values each the sample has three
    cases, and no value twice. It is the same in every process.

    Args:
        cases: All of them.
        values_of: What a case is made of; a value that two parameters may have is told with its parameter's name.
    """
    every = list(cases)
    return every if LONG_FORM else [every[at] for at in covering([frozenset(values_of(case)) for case in every])]


def covering(sets: Sequence[frozenset[Hashable]]) -> list[int]:
    """Return the places of few sets that together have every element of any set."""
    missing, times, chosen = frozenset[Hashable]().union(*sets), Counter[Hashable](), list[int]()
    while missing:
        # Most that is new, then what came seldom, then the first.
        best = min(range(len(sets)), key=lambda at: (-len(sets[at] & missing), sum(times[one] for one in sets[at]), at))
        chosen.append(best)
        missing -= sets[best]
        times.update(sets[best])
    return sorted(chosen)


def left_to_the_long_form(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the tests that the short form leaves out, of those marked ``each_value_once``; none in the long form."""
    if LONG_FORM:
        return []
    of_test: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("each_value_once") and not _is_skipped(item):
            of_test.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left: list[pytest.Item] = []
    for same in of_test.values():
        # An id for each ``parametrize`` and each fixture; what pytest calls indices is another one in each case.
        taken = set(covering([frozenset(enumerate(item.callspec._idlist)) for item in same]))
        left += [item for at, item in enumerate(same) if at not in taken]
    return left


def _is_skipped(item: pytest.Item) -> bool:
    """Whether it is in the long form alone: then it shows no value."""
    marks = item.iter_markers()
    return any(mark.name == "skip" or (mark.name == "skipif" and mark.args[:1] == (True,)) for mark in marks)


ALL_READERS = os.environ.get("LAKEBOUND_READERS") == "full"
"""``make test-readers`` asks every reader everything of every generated table; ``make test`` takes a sample by the seed."""

READERS_SEED = int(os.environ.get("LAKEBOUND_READERS_SEED") or 1)
