"""Orphans are taken while a writer is suspended whose data files are written and not committed yet."""

from __future__ import annotations

import pytest
from tests.support.pauses.form import ALL, WorldMaker, kept, make_world_fixture, tell  # noqa: F401
from tests.support.pauses.interleaving import Turn
from tests.support.pauses.runs import Case, Found, gates_of, run_cases

CASES = [("delta", ("orphans",)), ("delta", ("takeover", "orphans")), ("iceberg", ("orphans",))]
"""Not of Iceberg with a successor: a writer that is suspended in the catalog's transaction, longer than orphans are let alone,
commits a metadata file that was taken; only the age that they must have keeps it."""


@pytest.mark.parametrize(("kind", "others"), CASES)
def test_no_file_is_taken_that_is_committed_afterwards(kind: str, others: tuple[str, ...], make_world: WorldMaker) -> None:
    """Nothing is too young for it here: what a live application wrote since its last commit is left alone all the same.

    With a successor that has landed since, the files are taken, and the suspended application must not commit them.
    """
    world, found = make_world(kind, "leased"), Found()
    names = ("stream", *others)
    turns = tuple(Turn(number) for number in range(1, len(names)))
    stops = range(gates_of(world, "stream") + 1)[:: 1 if ALL else 6]
    found.add(run_cases(world, [Case(names, (Turn(0, stop_at), *turns, Turn(0))) for stop_at in stops], keep=kept()))
    tell(f"{kind}, orphans taken, {' + '.join(names)}", found)
    found.assert_clean()
