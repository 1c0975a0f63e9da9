"""A writer is suspended at each operation, and what lies under its feet becomes another log: it never reports a lost commit."""

from __future__ import annotations

import pytest
from tests.support.pauses.actors import make_actors
from tests.support.pauses.file_operations import interposed
from tests.support.pauses.form import ALL, WorldMaker, make_world_fixture  # noqa: F401
from tests.support.pauses.interleaving import Turn, interleave
from tests.support.pauses.strangers import (
    guest,
    live_guest,
    lost_commits,
    not_seen,
    prepare_guest,
    put_back,
    take_backup,
)
from tests.support.pauses.world import PausedWorld, Shape

from lakebound.errors import LakeboundError


def stops(world: PausedWorld, *, before_the_put: bool = False) -> list[int]:
    """Return where the stream is suspended: everywhere, or up to where its first commit gets into the log."""
    with interposed(world.live), world.run():
        actors = make_actors(world, ["stream"])
        interleave(actors, [])
    gates = actors[0].gates
    put = next(number for number, gate in enumerate(gates) if gate.startswith("os.link"))
    return list(range(put + 1)) if before_the_put else list(range(len(gates) + 1))[:: 1 if ALL else 2]


@pytest.mark.parametrize(
    ("shape", "carries_entry"),
    [("plain", True), ("young", False), *([("plain", False), ("young", True)] if ALL else [])],
)
def test_a_guest_commits_210_versions_and_the_log_is_cleaned(shape: Shape, carries_entry: bool, make_world: WorldMaker) -> None:
    """``young`` is a table at version 1, as a quarantine without a bad record is: every name above it is free afterwards."""
    world = make_world("delta", shape)
    made = prepare_guest(world, carries_entry=carries_entry)
    assert lost_commits(world, lambda at: guest(at, made), stops(world, before_the_put=True)) == []


def test_a_guest_commits_on_top_of_a_batch_and_the_log_is_cleaned(make_world: WorldMaker) -> None:
    world = make_world("delta", "plain")
    assert lost_commits(world, lambda at: live_guest(at, 5), stops(world)) == []


def test_a_zombie_is_older_than_the_log_that_is_kept(make_world: WorldMaker) -> None:
    """It has read the ledger, and does nothing until the log that it knows is gone."""
    world = make_world("delta", "plain")
    made = prepare_guest(world, carries_entry=False)
    with interposed(world.live), world.run():
        actors = [*make_actors(world, ["stream"]), guest(world, made)]
        interleave(actors, [Turn(0, 0), Turn(1), Turn(0)])
        assert isinstance(actors[0].error, LakeboundError)
        assert world.reports == [] and not_seen(world, []) == []


@pytest.mark.parametrize(
    ("is_current", "in_place"),
    [(True, True), (False, False), *([(True, False), (False, True)] if ALL else [])],
)
def test_a_backup_is_put_back_under_a_running_stream(is_current: bool, in_place: bool, make_world: WorldMaker) -> None:
    """A commit that looked at its log for the last time before is lost with the folder; any other that is reported is there."""
    world = make_world("delta", "plain")
    made = take_backup(world, is_current=is_current)
    assert lost_commits(world, lambda at: put_back(at, made, in_place=in_place), stops(world), looks=2) == []
