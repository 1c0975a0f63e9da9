"""A pipeline as a crash leaves it, in every phase of a batch: tables in memory, real control files, a topic.

Nothing here judges: ``pipeline_starts`` says what a start would land, the test compares it with the doctor.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from lakebound.control.folder import ControlFolder
from lakebound.inspection.doctor.pipeline.facts import KafkaLook, TopicRetention, Waiting
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.entry import Entry, Offsets, TopicOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places, local_places
from tests.support.worlds.memory_tables import Lake, Row, Stored

TOPIC, TOPIC_ID = "orders", "id-new"
PARTITIONS = (0, 1)
BATCH = 10
LATEST, EARLIEST = 40, 3
"""Kafka's first three records are gone, long after they were landed."""

FORMATS = (("delta",), ("iceberg",), ("delta", "iceberg"))
LANES = ("driver", "cluster")
PHASES = (
    "lease taken",
    "first table opened",
    "all tables opened",
    "before the offset log",
    "after the offset log",
    "after the data files",
    "quarantine committed",
    "first table committed",
    "second table committed",
    "all committed, before the commit log",
    "after the commit log",
    "ended cleanly",
)
OPENING = PHASES[:3]
"""Phases in which the last application has landed nothing."""

BETWEEN_TABLES = ("first table opened", "first table committed", "second table committed")
"""Phases that only a pipeline with two tables has."""

DEAD_PID = 4_000_000
OWN = psutil.Process()
APPS = {1: "orders-g0-1", 2: "orders-g0-2"}


def is_bad(offset: int) -> bool:
    """Whether the record goes to quarantine."""
    return offset % 5 == 4


def rows(start: int, end: int, *, bad: bool, topic_id: str = TOPIC_ID) -> list[Row]:
    """Return the rows of all partitions' offsets."""
    return [(TOPIC, topic_id, p, o) for p in PARTITIONS for o in range(start, end) if is_bad(o) == bad]


def span(start: int, end: int, topic_id: str = TOPIC_ID) -> Offsets:
    """Return one interval in every partition."""
    return {TOPIC: TopicOffsets(topic_id=topic_id, partitions=dict.fromkeys(PARTITIONS, ((start, end),)))}


def entry(kind: str, epoch: int, end: int, *, start: int | None = None, lane: str | None = None, **changes: Any) -> Entry:
    """Return an entry whose coverage is [0, end)."""
    landed = span(start, end) if start is not None else {}
    body = {"kind": kind, "pipeline": "orders", "epoch": epoch, "commit": f"{kind}-{epoch}-{end}", "coverage": span(0, end)}
    counted = {"read": 2, "landed": 1, "quarantined": 1, "rows": 1} if kind == "land" else {}
    return Entry.model_validate({**body, "range": landed, "lane": lane, **counted, **changes})


@dataclass
class World:
    """One case before the doctor and the start look at it."""

    formats: tuple[str, ...]
    lane: str
    phase: str
    folder: Path
    lake: Lake = field(default_factory=Lake)
    files: dict[str, str] = field(default_factory=dict)
    stale: dict[str, str] = field(default_factory=dict)
    topics: dict[str, TopicFacts | None] = field(default_factory=dict)
    look: dict[str, Any] = field(default_factory=dict)
    alterations: dict[str, Any] = field(default_factory=dict)
    now: float = field(default_factory=time.time)

    @property
    def spec(self) -> PipelineSpec:
        """The pipeline."""
        return SPECS[self.formats]

    @property
    def places(self) -> Places:
        """Below the case's folder."""
        return local_places(self.folder, self.folder / "lake")

    @property
    def control(self) -> ControlFolder:
        """The state folder."""
        return ControlFolder(self.folder, "orders")

    @property
    def targets(self) -> list[Stored]:
        """The stored tables, without the quarantine."""
        return [self.lake.stored[table.id] for table in self.spec.tables]

    @property
    def quarantine(self) -> Stored:
        """The stored quarantine."""
        return self.lake.stored[self.spec.quarantine_table.id]

    @property
    def kafka(self) -> KafkaLook:
        """What the doctor sees of Kafka."""
        places = {(TOPIC, p): Waiting(int((self.now - 60) * 1000), 1.0) for p in PARTITIONS}
        look = {"topics": self.topics, "waiting": places, "retention": {TOPIC: TopicRetention(milliseconds=7 * 86_400_000)}}
        return KafkaLook(**{**look, **self.look})

    def run(self) -> RunSpec:
        """The orders of the next application."""
        return RunSpec(spec=self.spec, places=self.places, app_id="orders-g0-3", freshness="500ms")

    def change(self, name: str, **changes: Any) -> None:
        """Alter keys of a control file."""
        self.files[name] = json.dumps({**json.loads(self.files.get(name, "{}")), **changes})

    def copy(self, folder: Path) -> World:
        """Return the same world in another folder."""
        lake = Lake()
        lake.stored = {name: replace(stored, commits=list(stored.commits)) for name, stored in self.lake.stored.items()}
        return replace(
            self, folder=folder, lake=lake, files=dict(self.files), topics=dict(self.topics), look={}, alterations={}
        )

    def write(self) -> None:
        """Write the files."""
        for name, text in self.files.items():
            path = self.control.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("latin-1"))


def make_world(formats: tuple[str, ...], lane: str, phase: str, folder: Path) -> World:
    """Return the world as the crash in a phase leaves it."""
    world = World(formats, lane, phase, folder)
    world.topics = {TOPIC: topic_facts()}
    for table in (*world.spec.tables, world.spec.quarantine_table):
        world.lake.stored[table.id] = Stored()
    _fill_tables(world)
    _fill_files(world)
    return world


def topic_facts(topic_id: str = TOPIC_ID, earliest: int = EARLIEST, latest: int = LATEST) -> TopicFacts:
    """Return a topic with the same offsets in every partition."""
    return TopicFacts(topic_id, dict.fromkeys(PARTITIONS, earliest), dict.fromkeys(PARTITIONS, latest))


def _fill_tables(world: World) -> None:
    """Epoch 1 lands one batch; epoch 2 opens, lands another and dies in its next; or dies while it opens."""
    number = PHASES.index(world.phase)
    opening = world.phase in OPENING
    for stored in (*world.targets, world.quarantine):
        stored.add(Entry(kind="genesis", pipeline="orders", epoch=1, commit="genesis"))
        stored.add(entry("open", 1, 0))
    land(world, 0, BATCH, 1)
    if opening:
        land(world, BATCH, 2 * BATCH, 1)
    opened = {"lease taken": 0, "first table opened": 1}.get(world.phase, 3)
    for stored in (*world.targets, world.quarantine)[:opened]:
        stored.add(entry("open", 2, 2 * BATCH if opening else BATCH))
    if opening:
        return
    land(world, BATCH, 2 * BATCH, 2)
    quarantined = number >= PHASES.index("quarantine committed")
    committed = {"first table committed": (0,), "second table committed": (1,)}.get(world.phase)
    if committed is None:
        done = number >= PHASES.index("all committed, before the commit log")
        committed = tuple(range(len(world.targets))) if done else ()
    land(world, 2 * BATCH, 3 * BATCH, 2, targets=committed, quarantine=quarantined)


def land(
    world: World, start: int, end: int, epoch: int, *, targets: Iterable[int] | None = None, quarantine: bool = True
) -> None:
    """Commit a batch to the quarantine and to some of the tables."""
    if quarantine:
        world.quarantine.add(entry("land", epoch, end, start=start), rows(start, end, bad=True))
    for index in range(len(world.targets)) if targets is None else targets:
        world.targets[index].add(entry("land", epoch, end, start=start, lane=world.lane), rows(start, end, bad=False))


def _fill_files(world: World) -> None:
    clean = world.phase == "ended cleanly"
    opening = world.phase in OPENING
    for app, files in ((1, world.stale), (2, world.files)):
        at = world.now - (3600 if app == 1 else 60)
        lease = {"epoch": app, "app_id": APPS[app], "host": socket.gethostname(), "pid": DEAD_PID, "pid_started_at": at}
        lease |= {"acquired_at": at, "heartbeat_at": at + 10, "ttl_seconds": 30.0, "released": app == 1 or clean}
        landed = app == 1 or not opening
        read = {TOPIC: {str(p): (app + 1) * BATCH for p in PARTITIONS}} if landed else {}
        tables = {table.id: {"version": "1", "committed_at": at + 9, "commits": 1, "rows": 8} for table in world.spec.tables}
        progress = {"pipeline": "orders", "app_id": APPS[app], "epoch": app, "state": "running", "started_at": at}
        progress |= {"updated_at": at + 10, "batch": 1 if landed else None, "high_water_marks": read}
        progress |= {"tables": tables if landed else {}, "last_commit_at": at + 9 if landed else None}
        submission = {"app_id": APPS[app], "pid": DEAD_PID, "pid_started_at": at, "submitted_at": at, "generation": 0}
        outcome = {"app_id": APPS[app], "verdict": "stopped", "reason": "asked to", "commits": 2, "started_at": at}
        outcome |= {"ended_at": at + 10}
        desired = {"state": "running", "generation": app - 1, "since": at - 60}
        for name, body in (("lease", lease), ("progress", progress), ("submission", submission), ("desired", desired)):
            files[f"{name}.json"] = json.dumps(body)
        if app == 1 or clean:
            files[f"outcomes/{APPS[app]}.json"] = json.dumps(outcome)
    world.files[f"outcomes/{APPS[1]}.json"] = world.stale[f"outcomes/{APPS[1]}.json"]
    if not clean and not opening:
        _fill_checkpoint(world)


def _fill_checkpoint(world: World) -> None:
    number = PHASES.index(world.phase)
    batches = 2 if number == PHASES.index("before the offset log") else 3
    committed = 3 if world.phase == "after the commit log" else 2
    for batch in range(batches):
        ends = json.dumps({TOPIC: {str(p): (batch + 1) * BATCH for p in PARTITIONS}})
        world.files[f"checkpoints/{APPS[2]}/0/offsets/{batch}"] = f'v1\n{{"batchWatermarkMs":0}}\n{ends}'
    for batch in range(committed):
        world.files[f"checkpoints/{APPS[2]}/0/commits/{batch}"] = 'v1\n{"nextBatchWatermarkMs":0}'


def make_alive(world: World, **progress: Any) -> None:
    """Have the application of the lease live: it is this very process."""
    own = {"host": socket.gethostname(), "pid": os.getpid(), "pid_started_at": OWN.create_time()}
    world.change("lease.json", **own, released=False, heartbeat_at=world.now, acquired_at=world.now - 60)
    world.change("submission.json", **own)
    world.change("progress.json", updated_at=world.now, last_commit_at=world.now - 1, state="running", **progress)
    world.files.pop(f"outcomes/{APPS[2]}.json", None)


def _spec(formats: tuple[str, ...]) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "500ms",
            "tables": [{"format": name, "name": "lake.orders"} for name in formats],
        }
    )


SPECS = {formats: _spec(formats) for formats in FORMATS}
