"""Who works on a table at once: two writers of one epoch, a successor, maintenance in two ways, and two kinds of rewind.

Each is made of a part that runs before anybody is suspended, such as the reading of the ledger, and of its body. The body says
what it did with success; that it failed is the exception that it ends with, or a note.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table as PyIcebergTable
from pyiceberg.table.update import AddSnapshotUpdate

from lakebound.control.folder import ControlFolder
from lakebound.control.handover import HandOver, Offer, TakeOffers
from lakebound.control.lease import acquire
from lakebound.ledger.entry import ENTRY_KEY, Entry, encode, new_commit_id
from lakebound.operations.maintenance.engines import StepLostError, carried_entry
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.operations.maintenance.run import run_steps
from lakebound.operations.maintenance.steps import (
    CheckpointLog,
    CleanLog,
    Compact,
    ExpireSnapshots,
    MaintenancePlan,
    MaintenanceStep,
    RemoveOrphans,
    StepEffect,
)
from lakebound.operations.maintenance.table_engine import TableEngine
from lakebound.operations.recovery.rewind.apply import apply_rewind
from lakebound.operations.recovery.rewind.facts import RewindRequest, make_plan
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import BatchOverlapError, LedgerWentBackError, Waits, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg.files import describe
from lakebound.tables.iceberg.graft import replacement
from lakebound.tables.iceberg.local_files import sync_locations
from lakebound.tables.places import Places
from lakebound.tables.prepared import to_text
from lakebound.tables.table import open_table
from lakebound.tables.take_over import Committer, take_over
from tests.support.pauses.interleaving import Actor
from tests.support.pauses.oracle import Report
from tests.support.pauses.world import PausedWorld
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import PIPELINE, Lander, draft, offsets
from tests.support.tables.maintained import compaction
from tests.support.tables.thread_safe import thread_safe

_BATCH = 10
_TIMES_TRIMMED = 4
_FAR_MS = 10**15
_SILENT_SECONDS = 0.0
"""A lease that outlives nothing: a rewind would wait for the application's end, and it is this very process."""


def _land_next(world: PausedWorld, app: Lander, name: str) -> None:
    """Land the next batch after what the ledger holds; where somebody else has landed it, the one after that."""
    for _ in range(_TIMES_TRIMMED):
        held = app.view.coverage.get("orders")
        start = held.partitions[0][-1][1] if held else 0
        entry = draft(start, start + _BATCH, app.epoch)
        try:
            _commit(world, app, entry, name, (start, start + _BATCH))
            return
        except (BatchOverlapError, LedgerWentBackError):
            app.view = app.table.read_ledger()
    raise AssertionError(f"{name} found no offsets to land")


def _commit(world: PausedWorld, app: Lander, entry: Entry, name: str, landed: tuple[int, int] = (0, 0)) -> None:
    files = app.write(*landed) if landed != (0, 0) else []
    committed = commit_entry(
        app.table,
        app.view,
        files,
        entry,
        own_epoch=app.epoch,
        check_lease=lambda: None,
        attempts=app.attempts,
        waits=Waits(between=lambda seconds: None, reread_seconds=0.5),
    )
    app.view = committed.view
    world.reports.append(Report(name, committed.entry.commit, committed.version, landed))


def stream(world: PausedWorld) -> Callable[[], None]:
    """Return an application that landed before, and lands two batches more."""
    app = world.lander()

    def land() -> None:
        for _ in range(2):
            _land_next(world, app, "stream")

    return land


def taker(world: PausedWorld) -> Callable[[], None]:
    """Return an application that lands three batches, and commits what maintenance has prepared after each."""
    app, offers = world.lander(), TakeOffers(ControlFolder(world.places().home, PIPELINE))

    def land() -> None:
        for _ in range(3):
            _land_next(world, app, "taker")
            committer = Committer(app.epoch, lambda: None)
            try:
                app.view = take_over(_noted(offers(world.spec.id), world), app.table, app.view, committer)
            except LedgerWentBackError:
                app.view = app.table.read_ledger()

    return land


def _noted(offers: Iterator[Offer], world: PausedWorld) -> Iterator[Offer]:
    for offer in offers:
        world.notes.append("taken")
        yield offer


def second(world: PausedWorld) -> Callable[[], None]:
    """Return another process of the same epoch, such as a replay, which lands the same offsets, and keeps the log cheap."""
    at = world.places()

    def land() -> None:
        table = open_table(world.spec, at)
        app = Lander(table, table.read_ledger(), world.epoch)
        _land_next(world, app, "second")
        table.keep_cheap()

    return land


def takeover(world: PausedWorld) -> Callable[[], None]:
    """Return the application that follows: a new epoch, an ``open`` entry, a batch."""
    at = world.places()

    def start() -> None:
        control = ControlFolder(at.home, PIPELINE)
        epoch = acquire(control, "successor", _SILENT_SECONDS, above_epoch=world.epoch, by_force=True).epoch
        table = open_table(world.spec, at)
        app = Lander(table, table.read_ledger(), epoch)
        _commit(world, app, draft(0, 0, epoch, "open"), "takeover")
        _land_next(world, app, "takeover")

    return start


def restore(world: PausedWorld) -> Callable[[], None]:
    """Return the step of a rewind that puts the table back to its first batch, without a lock, under the next epoch."""
    at = world.places()

    def put_back() -> None:
        entry = Entry(
            kind="reset", pipeline=PIPELINE, epoch=world.epoch + 1, commit=new_commit_id(), coverage=offsets(0, _BATCH)
        )
        version = open_table(world.spec, at).restore(world.first_version, entry)
        world.reports.append(Report("restore", entry.commit, version, is_reset=True))

    return put_back


def rewind(world: PausedWorld) -> Callable[[], None]:
    """Return a whole rewind: plan, lock, lease, restore of table and quarantine."""
    at = world.places()

    def apply() -> None:
        request = RewindRequest(world.before_ms, None)
        kafka: Any = world.world.kafka
        approved = make_plan(world.world.spec, at, request, kafka=kafka).plan.hash
        apply_rewind(world.world.spec, at, request, approved, by="a test", kafka=kafka)

    return apply


class _Rewriter:
    """In place of Spark: compacts an Iceberg table in one commit that is refused when somebody else was faster."""

    def __init__(self, at: Places) -> None:
        self._at = at

    def compact(self, table: TableSpec, step: Compact) -> StepEffect:
        """Rewrite all data files as one."""
        entry, foreign = carried_entry(table, self._at), foreign_iceberg(table, self._at)
        foreign.metadata.properties["commit.retry.num-retries"] = "0"
        old = [task.file for task in foreign.scan().plan_files()]
        opened = open_table(table, self._at)
        rows = foreign.scan().to_arrow().cast(opened.schema())
        written = write_data_files(rows, opened.layout(), "compacted")
        since_ms = int(time.time() * 1000)
        foreign.catalog.commit_table = _handing_over(  # type: ignore[method-assign]
            foreign.catalog.commit_table, foreign, HandOver(ControlFolder(self._at.home, PIPELINE), table.id), since_ms
        )
        try:
            with (
                foreign.transaction() as transaction,
                thread_safe(
                    transaction.update_snapshot(snapshot_properties={ENTRY_KEY: encode(entry)}).overwrite()
                ) as snapshot,
            ):
                for file in old:
                    snapshot.delete_data_file(file)
                for file in describe(written, foreign.metadata, table.id):
                    snapshot.append_data_file(file)
        except _TakenByStreamError as exc:
            if exc.outcome != "committed":
                raise StepLostError(table.id, exc.outcome) from exc
        except CommitFailedException as exc:
            raise StepLostError(table.id, str(exc)) from exc
        finally:
            foreign.catalog.engine.dispose()  # type: ignore[attr-defined]
        return StepEffect(files_before=len(old), files_after=1, commits=1)


class _TakenByStreamError(Exception):
    """In place of the result of a commit that was handed over."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


def _handing_over(commit: Callable[..., Any], table: PyIcebergTable, hand_over: HandOver, since_ms: int) -> Callable[..., Any]:
    """Return a catalog's ``commit_table`` that hands a snapshot to the stream, as Iceberg's own actions do here."""

    def handed(handle: PyIcebergTable, requirements: Any, updates: Any) -> Any:
        snapshot = next(one.snapshot for one in updates if isinstance(one, AddSnapshotUpdate))
        metadata, base = table.metadata, table.current_snapshot()
        assert base is not None
        sync_locations([snapshot.manifest_list], table.location())
        prepared = replacement(
            json.loads(base.model_dump_json()),
            json.loads(snapshot.model_dump_json()),
            table_uuid=str(metadata.table_uuid),
            schema_id=metadata.current_schema_id,
            spec_id=metadata.default_spec_id,
        )
        answer = hand_over(to_text(prepared), since_ms)
        if answer is not None:
            raise _TakenByStreamError(answer.outcome)
        return commit(handle, requirements, updates)

    return handed


def _maintenance(
    name: str, *kinds: str, rewriter: Callable[[Places], Any] = _Rewriter
) -> Callable[[PausedWorld], Callable[[], None]]:
    """Return the maker of a maintenance run with these steps.

    Args:
        name: Of the run.
        kinds: Of the steps.
        rewriter: What rewrites the files of an Iceberg table.
    """

    def make(world: PausedWorld) -> Callable[[], None]:
        at = world.places()
        steps = tuple(_step(kind, world) for kind in kinds)

        def run() -> None:
            plan = MaintenancePlan(pipeline=PIPELINE, at_ms=int(time.time() * 1000), steps=steps)
            control = ControlFolder(at.home, PIPELINE)
            engine = TableEngine(control, at, f"run-{name}", lambda: rewriter(at))
            report = run_steps(plan, engine, {world.spec.id: world.spec}, control, run_id=name, wait=lambda seconds: None)
            world.notes.extend(f"{one.step.kind} {one.outcome}: {one.problem}" for one in report.steps)

        return run

    return make


def _step(kind: str, world: PausedWorld) -> MaintenanceStep:
    body: dict[str, Any] = {"table": world.spec.id, "reason": "a test"}
    if kind == "checkpoint_log":
        return CheckpointLog(**body)
    if kind == "clean_log":
        return CleanLog(**body, before_version=_FAR_MS)
    if kind == "expire_snapshots":
        return ExpireSnapshots(**body, snapshot_ids=world.snapshots)
    if kind == "remove_orphans":
        return RemoveOrphans(**body, mode="quarantine", older_than_ms=_FAR_MS, delete_quarantined_before_ms=0)
    return compaction(world.spec)


compact = _maintenance("compact", "compact")
rewrite = _maintenance("rewrite", "compact", rewriter=lambda at: FileRewriter(at, ControlFolder(at.home, PIPELINE)))
clean = _maintenance("clean", "checkpoint_log", "clean_log")
expire = _maintenance("expire", "expire_snapshots")
remove_orphans = _maintenance("orphans", "remove_orphans")
maintain_delta = _maintenance("maintain", "compact", "checkpoint_log", "clean_log", "remove_orphans")
maintain_iceberg = _maintenance("maintain", "compact", "expire_snapshots", "remove_orphans")

Maker = Callable[[PausedWorld], Callable[[], None]]
FORMATS = ("delta", "iceberg")
CLEANING = ("clean", "expire", "maintain")
"""Who takes commits out of the history."""


def makers(kind: str) -> dict[str, Maker]:
    """Return the actors of a format, by name."""
    of_format: dict[str, Maker] = {"clean": clean} if kind == "delta" else {"expire": expire, "rewrite": rewrite}
    return {
        "stream": stream,
        "second": second,
        "takeover": takeover,
        "compact": compact,
        **of_format,
        "restore": restore,
        "rewind": rewind,
    }


def make_actors(world: PausedWorld, names: Sequence[str]) -> list[Actor]:
    """Return the actors, each of whose first part is done."""
    known = {**makers(world.spec.format), "orphans": remove_orphans, "taker": taker}
    known["maintain"] = maintain_delta if world.spec.format == "delta" else maintain_iceberg
    return [Actor(name, known[name](world)) for name in names]


def name_of(role: str, kind: str) -> str:
    """Return the actor's name in a format: what takes history away has another one in each."""
    if role == "cleaning":
        return "clean" if kind == "delta" else "expire"
    return role
