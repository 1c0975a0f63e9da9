"""The suite can fail: each check that keeps commits apart is taken out, and interleavings must show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.support.pauses.actors import make_actors
from tests.support.pauses.file_operations import interposed
from tests.support.pauses.form import WorldMaker, gates, make_world_fixture, only_where_all, tell  # noqa: F401
from tests.support.pauses.interleaving import Turn, interleave
from tests.support.pauses.oracle import Report
from tests.support.pauses.runs import Case, run_cases, single_pauses
from tests.support.pauses.strangers import guest, lost_commits, not_seen, prepare_guest, put_back, take_backup
from tests.support.pauses.world import PausedWorld

from lakebound.tables.delta import put as delta_put
from lakebound.tables.delta.table import DeltaLakeTable
from lakebound.tables.iceberg import catalog as iceberg_catalog
from lakebound.tables.iceberg.table import IcebergTable
from lakebound.tables.table import LedgerView

Check = Callable[..., None]


def without(patch: pytest.MonkeyPatch, *, before: bool) -> None:
    """Take out the look at the log's tip: the one before the put, or the ones after it."""
    follows, there, opened = delta_put._check_follows, delta_put._check_there, delta_put._opened
    calls = [0]

    def counted_anew(*arguments: object) -> object:
        calls[0] = 0
        return opened(*arguments)  # type: ignore[arg-type]

    patch.setattr(delta_put, "_opened", counted_anew)

    def checked(*arguments: object) -> None:
        calls[0] += 1
        is_before = calls[0] == 1
        if is_before is not before:
            follows(*arguments)  # type: ignore[arg-type]

    patch.setattr(delta_put, "_check_follows", checked)
    patch.setattr(delta_put, "_check_there", there if before else lambda *_: None)


def where(world: PausedWorld, start: str, end: str) -> list[int]:
    """Return the stops from the first operation of a kind to the first of another one after it."""
    with interposed(world.live), world.run():
        (actor,) = actors = make_actors(world, ["stream"])
        interleave(actors, [])
    first = next(number for number, gate in enumerate(actor.gates) if gate.startswith(start))
    last = next(number for number, gate in enumerate(actor.gates) if gate.startswith(end) and number > first)
    return list(range(first, last + 1))


def test_without_the_look_after_the_put(make_world: WorldMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world("delta", "young")
    made = prepare_guest(world, carries_entry=True)
    stops = where(world, "open _delta_log", "os.link")
    with monkeypatch.context() as patch:
        without(patch, before=False)
        lost = lost_commits(world, lambda at: guest(at, made), stops)
    print(f"\nwithout the look at the tip after the put: {len(lost)} of {len(stops)} interleavings show it")
    assert lost


@only_where_all
def test_without_the_look_before_the_put(make_world: WorldMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup without the tip is there: the commit gets into its log, where readers see it until it is taken back."""
    world = make_world("delta", "plain")
    made = take_backup(world, is_current=False)
    seen, torn = list[str](), 0
    original = delta_put._take_back

    def look(*arguments: object) -> None:
        seen.append("a commit without its predecessor")
        original(*arguments)  # type: ignore[arg-type]

    stops = where(world, "os.mkdir", "open _delta_log")
    with monkeypatch.context() as patch, interposed(world.live):
        patch.setattr(delta_put, "_take_back", look)
        for is_mutated in (False, True):
            if is_mutated:
                without(patch, before=True)
            torn = len(seen)
            for stop_at in stops:
                with world.run():
                    actors = [*make_actors(world, ["stream"]), put_back(world, made, in_place=True)]
                    interleave(actors, [Turn(0, stop_at), Turn(1), Turn(0)])
                    not_seen(world, list[Report]())
            assert bool(len(seen) - torn) is is_mutated
    print(f"\nwithout the look at the tip before the put: {len(seen) - torn} of {len(stops)} interleavings show it")


def test_without_the_check_of_the_parent(make_world: WorldMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rewind commits a child of a snapshot that expires at that moment: the current snapshot cannot be read."""
    world = make_world("iceberg", "compacted")
    cases = list(single_pauses(("restore", "expire"), gates(world)["restore"]))
    run_cases(world, cases).assert_clean()
    monkeypatch.setattr(iceberg_catalog, "_check_parent", lambda *_: None)
    found = run_cases(world, cases)
    tell("without the check of the parent", found)
    assert found.faulty_runs


@pytest.mark.parametrize("kind", ["delta", pytest.param("iceberg", marks=only_where_all)])
def test_without_the_epoch(kind: str, make_world: WorldMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application whose successor has opened the table commits on."""
    world = make_world(kind, "plain")
    cases = list(_every(3, single_pauses(("stream", "takeover"), gates(world)["stream"])))
    for table in (DeltaLakeTable, IcebergTable):
        monkeypatch.setattr(table, "_epoch", property(lambda self: 0, lambda self, value: None), raising=False)
    monkeypatch.setattr(LedgerView, "epoch", property(lambda self: 0))
    found = run_cases(world, cases)
    tell(f"{kind}, without the epoch", found)
    assert found.faulty_runs


def _every(step: int, cases: Iterator[Case]) -> Sequence[Case]:
    return list(cases)[::step]
