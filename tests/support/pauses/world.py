"""A table in a folder, or in a bucket, that is put back to the same state, under the same name, before each run of actors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from lakebound.control.lease import acquire
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg import open as iceberg_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from tests.support.pauses.bucket import Bucket
from tests.support.pauses.oracle import Report, State, read_state
from tests.support.tables.local_tables import Lander, lander, offsets, places, with_catalog
from tests.support.tables.maintained import compaction, rewrite_iceberg
from tests.support.tables.rewinding import World, make_world, now_ms
from tests.support.tables.stored import places_in

Shape = Literal["plain", "young", "forked", "compacted", "leased"]
BASE = range(30)
END = 90
"""Beyond what any run of actors lands."""


@dataclass
class PausedWorld:
    """A pipeline of one table that holds ``BASE``, and what its actors have reported.

    Attributes:
        folder: Where it is; ``saved`` beside it is the state from which every run starts.
        shape: ``plain``: three batches; ``young``: opened, and nothing landed; ``forked``: rewound once, and landed again;
            ``compacted``: the batches are one file since, and one more landed; ``leased``: an application holds the lease.
        before_ms: A moment at which the first batch alone had landed.
        snapshots: Ids of all Iceberg snapshots at the start.
        gates: How many operations each actor does alone, as far as that was counted.
        seen: Fingerprints of end states after which the next application was found to land all.
        bucket: Where the tables are; None: in the folder.
    """

    folder: Path
    shape: Shape
    world: World
    before_ms: int
    first_version: str
    snapshots: tuple[int, ...]
    reports: list[Report] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gates: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    bucket: Bucket | None = None
    _places: list[Places] = field(default_factory=list)

    @property
    def spec(self) -> TableSpec:
        """The table."""
        return self.world.spec.tables[0]

    @property
    def live(self) -> Path:
        """Where the actors work."""
        return self.folder / "live"

    @property
    def lake(self) -> Path:
        """The folder of the tables; of a bucket's, where they are copied to be judged."""
        return self.live / "lake"

    @property
    def epoch(self) -> int:
        """Of the application that wrote last."""
        return self.world.epoch

    def state(self) -> State:
        """Return what the table is now."""
        if self.bucket is not None:
            self.bucket.copy_to(self.live)
        return read_state(self.spec.format, self.lake, self.spec.name)

    def places(self) -> Places:
        """Return the places for an actor: it has a connection of its own to the catalog, as a process has."""
        if self.bucket is not None:
            return self.world.at
        dots = "/." * (len(self._places) + 1)
        uri = self.world.at.iceberg_catalog_uri.replace("/catalog.db", f"{dots}/catalog.db")
        self._places.append(with_catalog(self.world.at, uri))
        return self._places[-1]

    def lander(self, epoch: int | None = None) -> Lander:
        """Return an application that has read the ledger."""
        return lander(self.spec, self.places(), self.epoch if epoch is None else epoch)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Put the state of the start back for the block."""
        self.close()
        self.reports.clear()
        self.notes.clear()
        shutil.rmtree(self.live)
        shutil.copytree(self.folder / "saved", self.live, symlinks=True)
        if self.bucket is not None:
            self.bucket.put_back()
        try:
            yield
        finally:
            self.close()

    def save(self) -> None:
        """Take what is there now as the state from which every run starts."""
        self.close()
        shutil.rmtree(self.folder / "saved", ignore_errors=True)
        shutil.copytree(self.live, self.folder / "saved", symlinks=True)
        if self.bucket is not None:
            self.bucket.save()

    def close(self) -> None:
        """Close all connections to the catalog: its file will be replaced. A bucket of Delta tables has none."""
        if self.bucket is not None:
            return
        for at in (*self._places, self.world.at):
            iceberg_catalog.open_catalog(at).engine.dispose()
        iceberg_catalog._open_catalog.cache_clear()
        self._places.clear()

    def start_next(self) -> None:
        """Do what the next application does: open the table under a new epoch, and land what it lacks up to ``END``."""
        table = open_table(self.spec, self.places())
        view = table.read_ledger()
        app = Lander(table, view, view.epoch + 1)
        app.open()
        covered = app.view.coverage
        held = covered["orders"].partitions[0] if covered else ()
        at = 0
        for start, end in (*held, (END, END)):
            if at < start:
                app.land(at, min(start, END))
            at = end


def compact_at_once(spec: TableSpec, at: Places) -> None:
    """Rewrite all files as one."""
    if spec.format == "delta":
        DeltaEngine(at).compact(spec, compaction(spec))
    else:
        rewrite_iceberg(spec, at)


def make_paused_world(folder: Path, kind: str, shape: Shape = "plain", bucket: Bucket | None = None) -> PausedWorld:
    """Make a world of a format and a shape in a folder, of which nothing exists, with its tables there or in a bucket."""
    live = folder / "live"
    live.mkdir(parents=True)
    at = places(live) if bucket is None else places_in(bucket.server, bucket.name, live)
    world = make_world(live, at, tables=[{"format": kind, "name": "shop.orders"}])
    before_ms = now_ms()
    if shape != "young":
        world.land(0, 10)
        before_ms = now_ms()
        world.land(10, 20)
        world.land(20, 30)
    if shape == "forked":
        world.apply(before_ms)
        world.relands(30)
        before_ms = now_ms()
        world.land(30, 40)
    if shape == "compacted":
        compact_at_once(world.spec.tables[0], world.at)
        world.land(30, 40)  # the newest entry, so that all before it may expire
    if shape == "leased":
        acquire(world.control, "app", 3600)
    table = open_table(world.spec.tables[0], world.at)
    versions = [one for one in table.history().versions() if one.entry is not None and one.entry.coverage == offsets(0, 10)]
    known = tuple(int(one.version) for one in table.history().versions()) if kind == "iceberg" else ()
    first = versions[0].version if versions else ""
    made = PausedWorld(folder, shape, world, before_ms, first, known, bucket=bucket)
    made.save()
    return made
