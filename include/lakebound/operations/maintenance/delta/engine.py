"""Delta's steps, by ``deltalake`` alone: it is the one engine that writes a Delta log."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from lakebound.control.handover import HandOver
from lakebound.control.turns import AskForTurn
from lakebound.durable import sync_new
from lakebound.errors import CommitRefusedError, LakeboundError
from lakebound.ledger.entry import encode
from lakebound.operations.maintenance.delta.rewrite import LiveDeltaFile, live_files, replace, rewrite
from lakebound.operations.maintenance.engines import StepLostError, TableGoneError, UnknownLedgerError, check_ledger, told
from lakebound.operations.maintenance.steps import CheckpointLog, CleanLog, Compact, StepEffect, Vacuum
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location, delete_all
from lakebound.storage.requests import each
from lakebound.tables.delta.actions import CommitInfo, commit_text
from lakebound.tables.delta.checkpoints import base_version, deletable, is_readable, list_log, whole_checkpoints
from lakebound.tables.delta.draft import forget_scratch, write_checkpoint
from lakebound.tables.delta.durations import DELETED_FILES, explicit_ms
from lakebound.tables.delta.features import TableShape, check_may
from lakebound.tables.delta.history import carried_at, counting_entry
from lakebound.tables.delta.log import last_checkpoint
from lakebound.tables.delta.open import check_inside, on_disk, open_delta, read_shape
from lakebound.tables.delta.put import put
from lakebound.tables.delta.tip import read_tip
from lakebound.tables.delta.vectors import needed_files
from lakebound.tables.places import Places

_COMMIT_ATTEMPTS = 100
_TARGETS_PER_COMMIT = 8
"""A commit of maintenance costs the stream one refused attempt: they are few, yet a long rewrite need not be done twice."""

_MIN_UNREFERENCED_HOURS = 72
"""VACUUM FULL also takes files that no commit ever named, and a running batch writes such."""

_LONGEST_WAIT_SECONDS = 0.5
_SCRATCH_SECONDS = 6 * 3600.0
_MIN_REMOVED_HOURS = 1


class RetentionTooShortError(LakeboundError):
    """VACUUM was asked to delete what the table promises to keep, or what somebody may just be reading."""

    def __init__(self, table: str, asked_hours: int, least_hours: int, *, is_promised: bool) -> None:
        why = f"its property {DELETED_FILES} requires {least_hours}" if is_promised else f"the minimum is {least_hours}"
        super().__init__(
            f"table {table}: VACUUM with a retention of {asked_hours} hours is refused: {why}; lower the property, or raise "
            f"maintenance.history.removed_files_seconds"
        )


class UnknownFeaturesError(LakeboundError):
    """A table's files cannot be rewritten by what reads no more than the files."""

    def __init__(self, table: str, features: Sequence[str]) -> None:
        super().__init__(
            f"table {table} is not compacted: it uses {', '.join(features)}, which Lakebound does not enable; stop its "
            f"pipeline, then compact the table with Spark's OPTIMIZE"
        )


class LogNotCleanableError(LakeboundError):
    """The log cannot be shortened without losing what must stay."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(f"table {table}: its log is not cleaned up: {reason}")


class DeltaEngine:
    """Carries out the steps of Delta tables."""

    def __init__(self, places: Places) -> None:
        self._places = places

    def compact(
        self, table: TableSpec, step: Compact, turn: AskForTurn | None = None, hand_over: HandOver | None = None
    ) -> StepEffect:
        """Rewrite the files below ``below_bytes`` of a partition, or Z-order the whole partition; in several commits if large.

        Args:
            table: Table whose files are rewritten.
            step: The partition, and sizes in bytes; with ``order_by`` the partition's files of any size are rewritten.
            turn: Asks the stream to let a commit through when it was faster; None: the commit is only tried again.
            hand_over: Has the stream make the commit; None: it is made here.

        Raises:
            TableFeatureError: The table has a feature with which its files are not replaced here.
            UnknownFeaturesError: Rows of its files may be deleted without the file being replaced.
            FilesOutsideError: Files are not in its folder.
        """
        check_ledger(table, self._places)
        root = self._places.folder(table)
        with _translated(table):
            handle = self._open(table)
            _check_rewritable(read_shape(handle), table)
            files = [file for file in live_files(handle) if dict(file.partition) == step.partition or not step.partition]
            if not step.order_by:
                files = [file for file in files if file.size_bytes < step.below_bytes]
            if len(files) < 2:
                return StepEffect()
            check_inside(table.id, (file.path for file in files))
            done = StepEffect()
            if root.is_local:
                forget_scratch(root.path, _SCRATCH_SECONDS)
            for group in [files] if step.order_by else _groups(files, step.target_file_bytes):
                try:
                    done = done.plus(self._rewrite(handle, root, group, step, table, turn, hand_over))
                except StepLostError as exc:
                    if not done.commits:
                        raise
                    return done.plus(StepEffect(conflicts=exc.conflicts), note=str(exc))
        return done

    def _rewrite(
        self,
        handle: DeltaTable,
        root: Location,
        files: Sequence[LiveDeltaFile],
        step: Compact,
        table: TableSpec,
        turn: AskForTurn | None,
        hand_over: HandOver | None,
    ) -> StepEffect:
        rewritten = rewrite(handle, root, files, step)
        if not rewritten.inputs:
            return StepEffect()
        with turn or nullcontext():
            ask, hand = turn or (lambda: None), hand_over or (lambda body, since_ms: None)
            _, conflicts = replace(root, table.id, rewritten, on_conflict=ask, hand_over=hand)
        return StepEffect(
            files_before=len(rewritten.inputs),
            files_after=len(rewritten.outputs),
            bytes_rewritten=sum(file.size_bytes for file in rewritten.inputs),
            commits=1,
            conflicts=conflicts,
        )

    def checkpoint_log(self, table: TableSpec, step: CheckpointLog) -> StepEffect:
        """Write a checkpoint of the newest version, unless it has one."""
        path = self._places.folder(table)
        with _translated(table):
            handle = self._open(table)
            check_may(table.id, read_shape(handle), "checkpoint")
            before = last_checkpoint(path)
            if before >= handle.version():
                return StepEffect()
            write_checkpoint(path, handle.version())
        return StepEffect(files_before=handle.version() - before, note=f"log checkpoint at version {handle.version()}")

    def clean_log(self, table: TableSpec, step: CleanLog) -> StepEffect:
        """Delete the log below the newest checkpoint at or below ``before_version``; never the commit whose entry counts.

        Raises:
            LogNotCleanableError: No checkpoint stands there, or no entry but carried ones can be reached.
        """
        path = self._places.folder(table)
        log = path / "_delta_log"
        with _translated(table):
            handle = self._open(table)
            check_may(table.id, read_shape(handle), "clean_log")
            newest = handle.version()
        limit = min(step.before_version, _entry_version(path, newest, table))
        hint = last_checkpoint(path)  # readers start from it where it is there
        limit = min(limit, hint) if hint >= 0 else limit
        files = list_log(path)
        base = base_version(files, limit, lambda name: is_readable(log / name))
        if base is None:
            raise LogNotCleanableError(
                table.id, "there is no complete log checkpoint at or below it; the next run writes one first"
            )
        doomed = deletable(files, base)
        if not doomed:
            return StepEffect()
        if log.is_local:
            # Whoever wrote the checkpoint: before what it stands for is deleted, it is on the disk.
            sync_new((log.path / name for name in whole_checkpoints(files)[base]), log.path)
        # A reader that comes meanwhile finds every commit from the first gap on: the oldest go first.
        _, removed_bytes = _delete([log / file.name for file in doomed], in_order=True)
        return StepEffect(
            files_before=len(files),
            files_after=len(files) - len(doomed),
            bytes_removed=removed_bytes,
            removed=told([f"_delta_log/{file.name}" for file in doomed]),
            note=f"the log starts at version {base}",
        )

    def vacuum(self, table: TableSpec, step: Vacuum) -> StepEffect:
        """Delete removed files beyond the retention, between two commits that carry the entry on.

        Delta's default of seven days is no promise of the table's: it only lets log checkpoints name a removed file for so
        long, and a LITE VACUUM that comes later does not find it.

        Files with deletion vectors go when no version within the retention names them: deltalake does not know of them.

        Raises:
            TableFeatureError: The table has a feature with which files are not deleted here.
            RetentionTooShortError: The table's property promises to keep them longer.
        """
        check_ledger(table, self._places)
        path = self._places.folder(table)
        is_full = step.mode == "full"
        hours = math.ceil(step.retention_seconds / 3600)
        with _translated(table):
            handle = self._open(table)
            shape = read_shape(handle)
            check_may(table.id, shape, "vacuum")
            _check_retention(table, hours, handle)
            options: dict[str, Any] = {"full": is_full, "enforce_retention_duration": False}
            hours = max(hours, _MIN_UNREFERENCED_HOURS) if is_full else hours
            needed = (
                needed_files(path, handle, int(time.time() * 1000) - hours * 3_600_000) if shape.has_vectors else frozenset()
            )
            found = [name for name in handle.vacuum(hours, dry_run=True, **options) if unquote(name) not in needed]
            if not found:
                return StepEffect()
            paths = [on_disk(path, name) for name in found]
            sizes = sum(_sizes(paths))
            metrics = {"numFilesToDelete": len(paths), "sizeOfDataToDelete": sizes}
            self._note(table, "VACUUM START", {"specifiedRetentionMillis": str(hours * 3_600_000)}, metrics)
            deleted, _ = _delete(paths)
            self._note(table, "VACUUM END", {"status": "COMPLETED"}, {"numDeletedFiles": deleted})
        return StepEffect(files_before=len(found), bytes_removed=sizes, commits=2, removed=told(found))

    def _note(self, table: TableSpec, operation: str, parameters: dict[str, str], metrics: dict[str, int]) -> None:
        """Commit what is done, for who reads the table's history; the entry of the version before is carried on."""
        path = self._places.folder(table)
        for attempt in range(_COMMIT_ATTEMPTS):
            try:
                tip = read_tip(path, self._open(table).version(), table.id)
                entry = carried_at(path, tip.version, table.id)
                if entry is None:
                    raise UnknownLedgerError(table.id)
                info = CommitInfo(operation, int(time.time() * 1000), encode(entry), parameters, metrics)
                put(path, tip, commit_text([info.action()]), table.id)
                return
            except CommitRefusedError:
                time.sleep(random.uniform(0, min(0.01 * 2**attempt, _LONGEST_WAIT_SECONDS)))
        raise StepLostError(table.id, f"its commit was refused {_COMMIT_ATTEMPTS} times", _COMMIT_ATTEMPTS)

    def _open(self, table: TableSpec) -> DeltaTable:
        return open_delta(self._places.folder(table), table.id)


@contextmanager
def _translated(table: TableSpec) -> Iterator[None]:
    try:
        yield
    except CommitRefusedError as exc:
        raise StepLostError(table.id, f"another commit took the same files, or the same version ({exc})") from exc
    except TableNotFoundError as exc:
        raise TableGoneError(table.id) from exc


def _check_retention(table: TableSpec, hours: int, handle: DeltaTable) -> None:
    promised_ms = explicit_ms(handle.metadata().configuration, DELETED_FILES)
    least = _MIN_REMOVED_HOURS if promised_ms is None else math.ceil(promised_ms / 3_600_000)
    if hours < least:
        raise RetentionTooShortError(table.id, hours, least, is_promised=promised_ms is not None)


def _entry_version(path: Location, newest: int, table: TableSpec) -> int:
    """Return the version whose entry counts: it must stay."""
    found = counting_entry(path, newest, table.id)
    if found is None or found.entry.kind == "carry":
        raise LogNotCleanableError(
            table.id, "all ledger entries in it were copied by maintenance; the pipeline's next commit adds one"
        )
    return int(found.version)


def _check_rewritable(shape: TableShape, table: TableSpec) -> None:
    check_may(table.id, shape, "replace")
    if shape.has_vectors:
        raise UnknownFeaturesError(table.id, ["deletionVectors"])


def _groups(files: Sequence[LiveDeltaFile], target_bytes: int) -> Iterator[list[LiveDeltaFile]]:
    """Yield the files, in their order, in groups that one commit replaces."""
    group: list[LiveDeltaFile] = []
    for file in files:
        if group and sum(one.size_bytes for one in group) + file.size_bytes > _TARGETS_PER_COMMIT * target_bytes:
            yield group
            group = []
        group.append(file)
    if len(group) > 1:
        yield group


def _sizes(files: Sequence[Location]) -> list[int]:
    """Return their sizes; 0 where another clean-up was faster."""

    def size(file: Location) -> int:
        found = file.describe()
        return 0 if found is None else found.size_bytes

    return [size(file) for file in files] if all(file.is_local for file in files) else each(size, files)


def _delete(files: Sequence[Location], *, in_order: bool = False) -> tuple[int, int]:
    """Delete files, and return how many there were and how many bytes.

    Args:
        files: Which.
        in_order: Of a store, each in a request of its own, so that whoever reads meanwhile finds no later one gone.
    """
    sizes = _sizes(files)
    for group in [[file] for file in files] if in_order else [files]:
        delete_all(group)
    return sum(1 for size in sizes if size), sum(sizes)
