"""Work whose power cuts are looked at: each story is real work on real tables, in steps that say what the tables hold then."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.ledger.entry import missing
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.delta.rewrite import live_files, rewrite
from lakebound.operations.maintenance.delta.rewrite import replace as replace_files
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.orphan_files import remove_orphans
from lakebound.operations.maintenance.steps import CheckpointLog, CleanLog, ExpireSnapshots, RemoveOrphans, Vacuum
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.delta.open import open_at
from lakebound.tables.places import Places
from lakebound.tables.schema_change import Addition, SchemaPlan
from lakebound.tables.table import open_table
from tests.support.power.oracle import Held
from tests.support.power.recording import Recording
from tests.support.tables.local_tables import PIPELINE, SCHEMA, Lander, genesis, lander, make_table, offsets
from tests.support.tables.maintained import compaction, rewrite_iceberg, small_commits
from tests.support.tables.restoring import reset, version_of
from tests.support.tables.taking import Inline

IN_KAFKA = 14
"""Offsets that Kafka holds: what the ledger does not claim is landed after the start."""

TABLES = {
    "delta": TableSpec(
        format="delta",
        name="shop.orders",
        properties={"delta.checkpointInterval": "2", "delta.deletedFileRetentionDuration": "interval 0 hours"},
    ),
    "iceberg": TableSpec(format="iceberg", name="shop.orders", properties={"write.metadata.previous-versions-max": "2"}),
}


@dataclass
class Told:
    """What the tables may hold, from one mark of a recording to the next.

    Attributes:
        recording: Where the marks are.
        now: What they hold, by table.
        allowed: By mark, and table.
    """

    recording: Recording
    now: dict[str, Held | None]
    allowed: dict[str, dict[str, tuple[Held | None, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._mark("the beginning", self.now)

    @contextmanager
    def step(self, what: str, **after: Held) -> Iterator[None]:
        """Do a step; until it is done, each table holds what it held before or what it is to hold afterwards."""
        to = {**self.now, **after}
        self._mark(what, self.now, to)
        yield
        self.now = to
        self._mark(f"after {what}", to)

    def _mark(self, what: str, *holding: Mapping[str, Held | None]) -> None:
        mark = f"{len(self.allowed)}: {what}"
        self.allowed[mark] = {table: tuple({one[table]: None for one in holding}) for table in self.now}
        self.recording.reached(mark)


@dataclass(frozen=True)
class Story:
    """Work that a power cut interrupts, and what the tables hold before it and at last.

    Attributes:
        name: Of the story.
        tables: By the name under which the steps speak of them.
        before: What they hold when the work begins.
        finally_: What they hold after the next start.
        prepare: Done before the work; it is on the disk.
        work: What is cut.
        start_again: What is done after the cut.
        fault: Returns what is wrong with the tables together; empty where nothing is.
    """

    name: str
    tables: Mapping[str, TableSpec]
    before: Mapping[str, Held | None]
    finally_: Mapping[str, Held]
    prepare: Callable[[Places], object]
    work: Callable[[Places, Told], None]
    start_again: Callable[[Places], None]
    fault: Callable[[Mapping[str, Held | None]], str] = lambda _: ""


def up_to(end: int) -> Held:
    """Return what a table holds that has landed from 0 to an offset."""
    return Held(tuple(range(end)), tuple(range(end)))


def _landed(told: Told, app: Lander, start: int, end: int, *, in_folders: bool = False) -> None:
    with told.step(f"landing {start}", table=up_to(end)):
        files = app.write(start, end)
        if in_folders:
            files = [replace(file, path=Location(str(_moved(file.path.path, number)))) for number, file in enumerate(files)]
        app.land(start, end, files)
        app.table.keep_cheap()


def _moved(path: Path, number: int) -> Path:
    """Put a file where executors write theirs: folders below the table's, which nobody has synced."""
    folder = path.parent / "lb-batch" / f"_lb_p0={number}"
    folder.mkdir(parents=True, exist_ok=True)
    path.rename(folder / path.name)
    return folder / path.name


def _creation(spec: TableSpec, at: Places, told: Told) -> None:
    with told.step("creation", table=up_to(0)):
        make_table(spec, at)
    app = lander(spec, at)
    with told.step("opening"):
        app.open()
    _landed(told, app, 0, 2)
    _landed(told, app, 2, 4)


def _appends(spec: TableSpec, at: Places, told: Told) -> None:
    app = lander(spec, at)
    with told.step("opening"):
        app.open()
    _landed(told, app, 8, 10)
    _landed(told, app, 10, 11, in_folders=True)
    _landed(told, app, 11, 12)


def _compaction(spec: TableSpec, at: Places, told: Told) -> None:
    app = lander(spec, at)
    with told.step("compaction"):
        DeltaEngine(at).compact(spec, compaction(spec))
    app.table.read_ledger()
    app = lander(spec, at)
    _landed(told, app, 4, 5)
    with told.step("Z-order"):
        DeltaEngine(at).compact(spec, compaction(spec, order_by=("id",)))


def _cleaning(spec: TableSpec, at: Places, told: Told) -> None:
    with told.step("log checkpoint"):
        DeltaEngine(at).checkpoint_log(spec, CheckpointLog(table=spec.id, reason="a test"))
    with told.step("log clean-up"):
        done = DeltaEngine(at).clean_log(spec, CleanLog(table=spec.id, reason="a test", before_version=5))
        assert done.removed
    app = lander(spec, at)
    _landed(told, app, 5, 6)
    _landed(told, app, 6, 7)
    with told.step("second log clean-up"):
        assert DeltaEngine(at).clean_log(spec, CleanLog(table=spec.id, reason="a test", before_version=7)).removed


def _vacuum(spec: TableSpec, at: Places, told: Told) -> None:
    with told.step("compaction"):
        DeltaEngine(at).compact(spec, compaction(spec))
    time.sleep(0.002)  # the retention is none, the clock's unit a millisecond
    with told.step("vacuum"):
        step = Vacuum(table=spec.id, reason="a test", mode="lite", retention_seconds=0)
        assert DeltaEngine(at).vacuum(spec, step).removed
    _landed(told, lander(spec, at), 4, 5)


def _rewind(spec: TableSpec, at: Places, told: Told) -> None:
    with told.step("rewind", table=up_to(2)):
        table = open_table(spec, at)
        table.restore(version_of(table, 2).version, reset(2, 2))
    app = lander(spec, at, epoch=3)
    with told.step("opening"):
        app.open()
    _landed(told, app, 2, 5)


def _changes(spec: TableSpec, at: Places, told: Told) -> None:
    table = open_table(spec, at)
    entry = table.read_ledger().entry
    assert entry is not None
    carried = entry.model_copy(update={"kind": "carry"})
    with told.step("a column"):
        table.change_schema(SchemaPlan(additions=(Addition(("note",), pa.string()),)), carried)
    with told.step("a property"):
        table.read_ledger()
        table.set_properties(
            {"owner": "shop"} if spec.format == "iceberg" else {"delta.logRetentionDuration": "interval 9 days"}, carried
        )
    app = lander(spec, at)
    with told.step("opening"):
        app.open()


def _orphans(spec: TableSpec, at: Places, told: Told) -> None:
    def look(run_id: str, deleted_before_ms: int) -> None:
        far = int(time.time() * 1000) + 86_400_000
        body = {"mode": "quarantine", "older_than_ms": far, "delete_quarantined_before_ms": deleted_before_ms}
        step = RemoveOrphans.model_validate({"table": spec.id, "reason": "a test", **body})
        found = remove_orphans(spec, step, at, run_id, far)
        assert found.removed or deleted_before_ms

    with told.step("a look for orphans"):
        look("run-1", 0)
    with told.step("their deletion"):
        look("run-2", int(time.time() * 1000) + 86_400_000)
    _landed(told, lander(spec, at), 3, 4)


def _expiry(spec: TableSpec, at: Places, told: Told) -> None:
    ids = [int(version.version) for version in open_table(spec, at).history().versions()]
    turn = AskForTurn(ControlFolder(at.home, PIPELINE), spec.id)
    with told.step("expiry"):
        assert expire(spec, ExpireSnapshots(table=spec.id, reason="a test", snapshot_ids=tuple(ids)), at, turn).removed
    _landed(told, lander(spec, at), 6, 7)


def _handed_over(spec: TableSpec, at: Places, told: Told) -> None:
    """Maintenance prepares it, and the application that runs commits it and goes on."""
    app = lander(spec, at)
    with told.step("what maintenance prepared"):
        if spec.format == "delta":
            compact = compaction(spec)
            root = at.folder(spec)
            handle = open_at(root)
            rewritten = rewrite(handle, root, live_files(handle), compact)
            replace_files(root, spec.id, rewritten, hand_over=Inline(app))
        else:
            ids = tuple(int(version.version) for version in open_table(spec, at).history().versions())
            step = ExpireSnapshots(table=spec.id, reason="a test", snapshot_ids=ids)
            turn = AskForTurn(ControlFolder(at.home, PIPELINE), spec.id)
            assert expire(spec, step, at, turn, Inline(app)).removed
    _landed(told, app, 6, 7)


def _lost_batch(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 3)
    (written,) = lander(spec, at).write(500, 501)
    lost = written.path.path.parent / "lb-lost"
    lost.mkdir()
    os.rename(written.path.path, lost / "part-0.parquet")


def _nothing(spec: TableSpec, at: Places) -> None:
    """There is no table."""


def _commits(count: int) -> Callable[[TableSpec, Places], object]:
    return lambda spec, at: small_commits(spec, at, count)


def _rewritten(spec: TableSpec, at: Places) -> None:
    small_commits(spec, at, 6)
    rewrite_iceberg(spec, at)


def start_again(spec: TableSpec, at: Places) -> None:
    """Do what an application does when it starts, and land what the ledger does not claim."""
    table = open_table(spec, at)
    if not table.exists():
        table.create(SCHEMA, genesis())
    view = table.read_ledger()
    app = Lander(table, view, view.epoch + 1)
    app.open()
    for topic in missing(offsets(0, IN_KAFKA), app.view.coverage).values():
        for start, end in topic.partitions[0]:
            app.land(start, end)
            table.keep_cheap()


Prepare = Callable[[TableSpec, Places], object]
Work = Callable[[TableSpec, Places, Told], None]


def _story(name: str, format_: str, prepare: Prepare, work: Work, base: int | None) -> Story:
    """Return a story of one table that has landed so many offsets before; None: there is no table."""
    spec = TABLES[format_]
    return Story(
        name=f"{format_}: {name}",
        tables={"table": spec},
        before={"table": None if base is None else up_to(base)},
        finally_={"table": up_to(IN_KAFKA)},
        prepare=lambda at: prepare(spec, at),
        work=lambda at, told: work(spec, at, told),
        start_again=lambda at: start_again(spec, at),
    )


def _each(name: str, prepare: Prepare, work: Work, base: int | None) -> list[Story]:
    return [_story(name, format_, prepare, work, base) for format_ in TABLES]


OF_ONE_TABLE = (
    *_each("creation", _nothing, _creation, None),
    *_each("appends", _commits(8), _appends, 8),
    *_each("rewind", _commits(4), _rewind, 4),
    *_each("columns and properties", _commits(3), _changes, 3),
    *_each("orphans", _lost_batch, _orphans, 3),
    _story("compaction", "delta", _commits(4), _compaction, 4),
    _story("log clean-up", "delta", _commits(5), _cleaning, 5),
    _story("vacuum", "delta", _commits(4), _vacuum, 4),
    _story("expiry", "iceberg", _rewritten, _expiry, 6),
    _story("compaction by the stream", "delta", _commits(6), _handed_over, 6),
    _story("expiry by the stream", "iceberg", _rewritten, _handed_over, 6),
)
