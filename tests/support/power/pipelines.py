"""Stories of a whole pipeline, tables of both formats and a quarantine, whose power cuts are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lakebound.operations.recovery.plan import PlanRefusedError
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from tests.support.power.oracle import Held
from tests.support.power.stories import Story, Told
from tests.support.tables.quarantined import Quarantined
from tests.support.tables.releasing import Scene, make_scene
from tests.support.tables.rewinding import World, described, make_world, now_ms

BAD = (1, 5)


def _tables(spec: PipelineSpec) -> dict[str, TableSpec]:
    return {"delta": spec.tables[0], "iceberg": spec.tables[1], "quarantine": spec.quarantine_table}


def _landed(end: int) -> dict[str, Held]:
    """Return what the tables hold that have landed from 0 to an offset, the bad ones in quarantine."""
    covered = tuple(range(end))
    good = Held(tuple(offset for offset in covered if offset not in BAD), covered)
    return {"delta": good, "iceberg": good, "quarantine": Held(tuple(one for one in BAD if one < end), covered)}


def _hidden(found: Mapping[str, Held | None]) -> str:
    """Say which bad record a table counts as landed that is not in quarantine."""
    kept = found["quarantine"]
    for table in ("delta", "iceberg"):
        held = found[table]
        if held is not None and not {*held.covered} & {*BAD} <= {*(kept.rows if kept is not None else ())}:
            return f"the {table} table counts a bad record that is not in quarantine"
    return ""


class Stream:
    """A stream with bad records; it is rewound, too."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.then = 0

    def prepare(self, at: Places) -> None:
        """Land two batches, one record of each being bad."""
        self.world = make_world(at.home)
        self.world.land(0, 4, bad=[1])
        self.then = now_ms()
        self.world.land(4, 8, bad=[5])

    @property
    def made(self) -> World:
        """The pipeline, which is there."""
        assert self.world is not None
        return self.world

    def land(self, at: Places, told: Told) -> None:
        """Land a batch: its bad record first."""
        with told.step("a batch", **_landed(8)):
            self.made.land(4, 8, bad=[5])
        with told.step("a start"):
            self.made.start()
        with told.step("another batch", **_landed(10)):
            self.made.land(8, 10, bad=[])
            self.made._commit(self.made.spec.quarantine_table, 8, 10, {8, 9})

    def rewind(self, at: Places, told: Told) -> None:
        """Take all tables back."""
        with told.step("the rewind", **_landed(4)):
            self.made.apply(self.then)

    def start_again(self, at: Places) -> None:
        """Start, and land what each table lacks."""
        self.made.relands(12, BAD)

    def rewind_again(self, at: Places) -> None:
        """Apply the rewind anew, as a person does whose rewind was cut short; then start."""
        try:
            self.made.apply(self.then)
        except PlanRefusedError as exc:
            assert "nothing" in str(exc), exc
        self.start_again(at)


class Releases:
    """A pipeline whose bad records fit now."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.scene: Scene | None = None

    def prepare(self, at: Places) -> None:
        """Put some records into quarantine."""
        self.scene = make_scene(Quarantined(at, [(offset, "does_not_fit", b"x") for offset in BAD], end=8), self._monkeypatch)

    def release(self, at: Places, told: Told) -> None:
        """Land them."""
        covered = tuple(range(8))
        with told.step("the release", delta=Held(BAD, covered), iceberg=Held(BAD, covered)):
            self.start_again(at)

    def start_again(self, at: Places) -> None:
        """Release what is not landed yet."""
        assert self.scene is not None
        result = self.scene.release()
        assert result.state == "completed", result.reason


def stories(monkeypatch: pytest.MonkeyPatch) -> dict[str, Story]:
    """Return the stories by name."""
    stream, rewound, releases = Stream(), Stream(), Releases(monkeypatch)
    before = {**_landed(8), "delta": Held((), tuple(range(8))), "iceberg": Held((), tuple(range(8)))}
    after = {**before, "delta": Held(BAD, tuple(range(8))), "iceberg": Held(BAD, tuple(range(8)))}

    def first_batch(at: Places) -> None:
        stream.world = make_world(at.home)
        stream.world.land(0, 4, bad=[1])

    tables = _tables(described())
    releasing = _tables(described(quarantine={"format": "delta", "name": "quarantine.orders"}))
    told = (
        Story("batches with bad records", tables, _landed(4), _landed(12), first_batch, stream.land, stream.start_again),
        Story("a whole rewind", tables, _landed(8), _landed(12), rewound.prepare, rewound.rewind, rewound.rewind_again),
        Story("a release", releasing, before, after, releases.prepare, releases.release, releases.start_again),
    )
    return {story.name: replace(story, fault=_hidden) for story in told}


NAMES = ("batches with bad records", "a whole rewind", "a release")
