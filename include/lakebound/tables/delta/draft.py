"""What deltalake would write into a Delta log, made in a scratch log that links to the real one.

deltalake knows what a restore or a change of columns must say, but its own commits are not synced to the disk, rebase onto
commits that were not looked at, and do not see whether the log was cleaned or replaced. So its commit is a draft here, and
``delta_put`` commits it.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from deltalake import DeltaTable, PostCommitHookProperties
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from lakebound.durable import sync_file, sync_folder
from lakebound.storage.location import Location
from lakebound.storage.requests import each
from lakebound.tables.delta.checkpoints import base_version, is_readable, list_log, log_names
from lakebound.tables.delta.log import commit_file, last_checkpoint

T = TypeVar("T")

SCRATCH = "_compaction"
"""Folder in a table's: readers and VACUUM skip names with an underscore."""

NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
_HINT = "_last_checkpoint"
_SIDECARS = "_sidecars"


def draft_commit(folder: Location, version: int, operate: Callable[[DeltaTable], object], *, back_to: int | None = None) -> str:
    """Return the content of the commit after a version that an operation of deltalake makes; the table stays as it is.

    Args:
        folder: The table's.
        version: The newest.
        operate: Commits once; data files are not in the scratch table's folder.
        back_to: The oldest version that it reads; None: the newest alone.
    """
    with _linked_log(folder, version, version if back_to is None else back_to) as scratch:
        operate(DeltaTable(str(scratch)))
        return commit_file(Location(str(scratch)), version + 1).read().decode()


def draft_table(folder: Location, create: Callable[[str], object]) -> str:
    """Return the content of the first commit of a table, which ``create`` makes at the address that it is given."""
    with scratch_folder(folder) as scratch:
        create(str(scratch))
        return commit_file(Location(str(scratch)), 0).read().decode()


def write_checkpoint(folder: Location, version: int) -> None:
    """Write a checkpoint of a version, so that no reader ever finds one that is torn.

    deltalake writes the hint by which readers find a checkpoint right after it: after a power cut the hint could be there, and
    the checkpoint empty.

    Args:
        folder: The table's.
        version: The version; its commit is in the log.
    """
    with _linked_log(folder, version, version) as scratch:
        DeltaTable(str(scratch), version=version).create_checkpoint()
        made = scratch / "_delta_log"
        _publish(sorted(made.glob(f"{version:020d}.checkpoint*")), folder)
        if version > last_checkpoint(folder):
            _publish([made / _HINT], folder)


def checkpoint_of(folder: Location, version: int, read: Callable[[Path], T]) -> T:
    """Return what is read of a version's state, as a checkpoint in one file; the table's log gets none.

    Args:
        folder: The table's.
        version: The version; its commit is in the log.
        read: Reads the checkpoint, which is gone afterwards.
    """
    with _linked_log(folder, version, version) as scratch:
        DeltaTable(str(scratch), version=version).create_checkpoint()
        return read(scratch / "_delta_log" / f"{version:020d}.checkpoint.parquet")


def _publish(made: Sequence[Path], folder: Location) -> None:
    """Put files into the log, each in one step."""
    log = folder / "_delta_log"
    if not log.is_local:
        each(lambda path: (log / path.name).upload(path), made)
        return
    for path in made:
        sync_file(path)
        os.replace(path, log.path / path.name)
    sync_folder(log.path)


@contextmanager
def _linked_log(folder: Location, version: int, back_to: int) -> Iterator[Path]:
    """Yield a scratch table without data files whose log leads to the versions from ``back_to`` up to ``version``."""
    source = folder / "_delta_log"
    base = _base(folder, back_to)
    with scratch_folder(folder) as scratch:
        log = scratch / "_delta_log"
        log.mkdir()
        start = f"{base:020d}.checkpoint"
        checkpoint = [source / name for name in log_names(folder) if name.startswith(start)] if base >= 0 else []
        needed = (*checkpoint, *(commit_file(folder, number) for number in range(max(base, 0), version + 1)))
        if source.is_local:
            for file in needed:
                link(file.path, log / file.name)
            if (source / _SIDECARS).path.is_dir():
                (log / _SIDECARS).symlink_to((source / _SIDECARS).path)
        else:
            sidecars = [file for file, _ in (source / _SIDECARS).list()]
            if sidecars:
                (log / _SIDECARS).mkdir()
            each(lambda file: _download(file, log / file.relative_to(source)), (*needed, *sidecars))
        yield scratch


def _download(file: Location, to: Path) -> None:
    with suppress(FileNotFoundError):  # cleaned up meanwhile
        to.write_bytes(file.read())


def _base(folder: Location, back_to: int) -> int:
    """Return the newest version up to ``back_to`` that has a checkpoint; -1 without one: the log then leads there from 0."""
    hint = last_checkpoint(folder)
    if 0 <= hint <= back_to:
        return hint
    log = folder / "_delta_log"
    found = base_version(list_log(folder), back_to, lambda name: is_readable(log / name))
    return -1 if found is None else found


@contextmanager
def scratch_folder(folder: Location) -> Iterator[Path]:
    """Yield a new folder of this machine, below a table's where that is on it, which is gone afterwards."""
    if not folder.is_local:
        with TemporaryDirectory(prefix="lakebound-", ignore_cleanup_errors=True) as made:
            yield Path(made)
        return
    scratch = folder.path / SCRATCH / uuid.uuid4().hex
    _make(scratch)
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        with suppress(OSError):
            scratch.parent.rmdir()


@retry(retry=retry_if_exception_type(FileNotFoundError), stop=stop_after_attempt(20), reraise=True)
def _make(scratch: Path) -> None:
    """Make the folder. Whoever ends another draft removes the folder of all drafts when it is empty, also at this moment."""
    scratch.mkdir(parents=True)


def link(source: Path, target: Path) -> None:
    """Give a file a second name; a file system without hard links gets a copy."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        return  # cleaned up meanwhile
    except OSError:
        shutil.copyfile(source, target)


def forget_scratch(root: Path, older_than_seconds: float) -> None:
    """Delete what killed processes left; one that still runs is younger."""
    for folder in (root / SCRATCH).glob("*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > older_than_seconds:
                shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        (root / SCRATCH).rmdir()
