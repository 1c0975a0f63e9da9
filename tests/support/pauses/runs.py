"""Runs of actors under schedules: each is judged, and the distinct states in which they end are kept."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lakebound.errors import LakeboundError
from tests.support.pauses.actors import CLEANING, make_actors
from tests.support.pauses.file_operations import interposed
from tests.support.pauses.interleaving import Actor, Turn, interleave
from tests.support.pauses.oracle import State, problems, read_by_pyiceberg
from tests.support.pauses.world import BASE, END, PausedWorld


@dataclass(frozen=True)
class Case:
    """One schedule of named actors."""

    actors: tuple[str, ...]
    turns: tuple[Turn, ...]

    def __str__(self) -> str:
        """Return what is needed to run it again."""
        turns = ", ".join(
            f"{self.actors[turn.actor]} to {'its end' if turn.stop_at is None else turn.stop_at}" for turn in self.turns
        )
        return f"{' + '.join(self.actors)}: {turns}"


@dataclass
class Found:
    """What came of runs.

    Attributes:
        runs: How many.
        blocked: Of these, in how many an actor waited for another one's lock.
        faults: Case and what is wrong after it.
        states: Fingerprint to the rows of the table.
        ends: How actors ended, and how often.
    """

    runs: int = 0
    blocked: int = 0
    seconds: float = 0.0
    faults: list[tuple[str, str]] = field(default_factory=list)
    faulty_runs: int = 0
    states: dict[str, tuple[int, ...]] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """Return the counts."""
        return (
            f"{self.runs} interleavings ({self.blocked} with a lock waited for), {len(self.states)} distinct end states, "
            f"{self.seconds:.0f} s, {self.faulty_runs} faulty"
        )

    def add(self, other: Found) -> None:
        """Count another one's runs here."""
        self.runs, self.blocked = self.runs + other.runs, self.blocked + other.blocked
        self.seconds, self.faulty_runs = self.seconds + other.seconds, self.faulty_runs + other.faulty_runs
        self.faults += other.faults
        self.states |= other.states
        self.ends += other.ends

    def assert_clean(self) -> None:
        """Fail with the first faults."""
        text = "\n".join(f"{case}\n    {what}" for case, what in self.faults[:20])
        assert not self.faults, f"{self}\n{text}"


def gates_of(world: PausedWorld, name: str) -> int:
    """Return how many gates an actor passes alone; what is loaded at the first use is loaded then."""
    if name not in world.gates:
        with interposed(world.live), world.run():
            (actor,) = actors = make_actors(world, [name])
            interleave(actors, [])
            if actor.error is not None:
                raise actor.error
            world.gates[name] = len(actor.gates)
    return world.gates[name]


def single_pauses(names: Sequence[str], gates: int) -> Iterator[Case]:
    """Yield: the first is suspended before each of its operations, the others run to their ends, it goes on."""
    for stop_at in range(gates + 1):
        others = tuple(Turn(number) for number in range(1, len(names)))
        yield Case(tuple(names), (Turn(0, stop_at), *others, Turn(0)))


def double_pauses(names: Sequence[str], gates: Sequence[int], count: int, chance: random.Random) -> Iterator[Case]:
    """Yield a sample in which each actor but the last is suspended at some operation, and they go on in some order."""
    for _ in range(count):
        stops = tuple(Turn(number, chance.randrange(gates[number] + 1)) for number in range(len(names)))
        if len(names) > 2:
            stops = (*stops[:-1], Turn(len(names) - 1))
        order = list(range(len(names)))
        chance.shuffle(order)
        yield Case(tuple(names), (*stops, *(Turn(number) for number in order)))


def run_cases(world: PausedWorld, cases: Iterable[Case], *, keep: Path | None = None) -> Found:
    """Run the cases, judge each of them, and keep the first of each end state in a folder."""
    found, began = Found(), time.monotonic()
    with interposed(world.live):
        for case in cases:
            with world.run():
                _run(world, case, found, keep)
    found.seconds = time.monotonic() - began
    return found


def _run(world: PausedWorld, case: Case, found: Found, keep: Path | None) -> None:
    actors = make_actors(world, case.actors)
    interleave(actors, case.turns)
    found.runs += 1
    found.blocked += any(actor.was_blocked for actor in actors)
    wrong = list(_strange_ends(actors, found.ends))
    state = world.state()
    was_cleaned = any(name in CLEANING for name in case.actors)
    wrong += problems(state, world.reports, BASE, was_cleaned=was_cleaned)
    if not wrong:
        found.states[state.fingerprint] = state.rows
    if state.fingerprint not in world.seen and not wrong:
        if keep is not None:
            _keep(world, state, case, keep)
        wrong += [*_otherwise_read(world, state), *_after_next_start(world)]
        if not wrong:
            world.seen.add(state.fingerprint)
    found.ends.update(note.partition(":")[0] for note in world.notes)
    found.faults += [(str(case), one) for one in wrong]
    found.faulty_runs += bool(wrong)


def _strange_ends(actors: Sequence[Actor], ends: Counter[str]) -> Iterator[str]:
    """Yield errors that nobody expects: those by which an actor says that it lost are Lakebound's own."""
    for actor in actors:
        ends[f"{actor.name} {type(actor.error).__name__ if actor.error else 'done'}"] += 1
        if actor.error is not None and not isinstance(actor.error, LakeboundError):
            yield f"{actor.name} ended with {type(actor.error).__name__}: {actor.error}"


def _otherwise_read(world: PausedWorld, state: State) -> Iterator[str]:
    if world.spec.format == "iceberg":
        rows = read_by_pyiceberg(world.lake / "iceberg" / "catalog.db", world.spec.name)
        if rows != state.rows:
            yield f"PyIceberg finds {rows}, and its files hold {state.rows}"


def _after_next_start(world: PausedWorld) -> Iterator[str]:
    """Yield what is wrong after the next application has landed all that the table lacked."""
    try:
        world.start_next()
    except Exception as exc:
        yield f"the next application cannot start: {type(exc).__name__}: {exc}"
        return
    state = world.state()
    yield from (f"after the next start: {one}" for one in state.broken)
    if list(state.rows) != list(range(END)):
        yield (
            f"after the next start: missing {sorted(set(range(END)) - set(state.rows))[:5]}, "
            f"doubled {[one for one, count in Counter(state.rows).items() if count > 1][:5]}"
        )


def _keep(world: PausedWorld, state: State, case: Case, keep: Path) -> None:
    """Copy the tables as they are, with what they must hold; they are read later under the name that they have now."""
    folder = keep / f"{world.spec.format}-{state.fingerprint}"
    if folder.exists():
        return
    world.close()
    shutil.copytree(world.lake, folder / "lake", symlinks=True)
    body = {
        "format": world.spec.format,
        "name": world.spec.name,
        "lake": str(world.lake),
        "rows": state.rows,
        "case": str(case),
    }
    (folder / "state.json").write_text(json.dumps({**body, "case": str(case)}))
