"""The form in which pauses are tried: a sample by seed in ``make test``, all of them in ``make test-pauses``."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.pauses.actors import makers
from tests.support.pauses.runs import Found, gates_of
from tests.support.pauses.world import PausedWorld, Shape, make_paused_world

ALL = os.environ.get("LAKEBOUND_PAUSES") == "full"
only_where_all = pytest.mark.skipif(not ALL, reason="only in the long form: make test-pauses")
KEPT = os.environ.get("LAKEBOUND_PAUSES_KEPT")
"""Folder for the distinct end states, which Spark reads afterwards."""

_MEMORY = Path("/dev/shm")
WorldMaker = Callable[[str, Shape], PausedWorld]


def kept() -> Path | None:
    """Return where end states go, None: they are not kept."""
    return Path(KEPT) if KEPT else None


def gates(world: PausedWorld) -> dict[str, int]:
    """Return how many operations each actor of a world's format does."""
    return {name: gates_of(world, name) for name in makers(world.spec.format)}


def tell(what: str, found: Found) -> None:
    """Print the counts, and write them beside the states that are kept."""
    ends = ", ".join(f"{name} {count}" for name, count in sorted(found.ends.items()))
    print(f"\n{what}: {found}\n    {ends}")
    if KEPT:
        with (Path(KEPT) / "counts.txt").open("a") as file:
            file.write(f"{what}: {found}\n")


def seeded(*parts: object) -> random.Random:
    """Return a source of chance that is the same in each run."""
    return random.Random(repr(parts))


@pytest.fixture(name="make_world", scope="module")
def make_world_fixture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorldMaker]:
    """Makes worlds, each once for a module; in memory where that is possible, as they are copied thousands of times."""
    root = Path(tempfile.mkdtemp(prefix="lakebound-pauses-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None))
    made: dict[tuple[str, Shape], PausedWorld] = {}

    def make(kind: str, shape: Shape = "plain") -> PausedWorld:
        if (kind, shape) not in made:
            made[kind, shape] = make_paused_world(root / f"{kind}-{shape}", kind, shape)
        return made[kind, shape]

    try:
        yield make
    finally:
        for world in made.values():
            world.close()
        shutil.rmtree(root, ignore_errors=True)
