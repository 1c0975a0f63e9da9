"""Restores a backup: what is there is moved aside, and every restored pipeline is held until a person starts it.

The desired state is written first, and never missing: nothing starts an application while files are exchanged. A lease's epoch
is the higher one of both: an older one could let two applications have the same. What the tables know of epochs counts anyway,
at the next start.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import time
import uuid
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lakebound.control.desired import Desired, hold_restored, readable_desired
from lakebound.control.folder import ControlFolder, locked, read_json, write_json
from lakebound.control.incidents import Decision, record_incident
from lakebound.control.lease import Lease, readable_lease
from lakebound.control.lock_holder import holders_of_writes
from lakebound.control.private_files import file_mode, make_private_folder
from lakebound.durable import make_folder, sync_file, sync_folder, sync_new
from lakebound.errors import CatalogLockedError
from lakebound.operations.backup.archive import extract
from lakebound.operations.backup.manifest import CATALOG, PIPELINES, is_state
from lakebound.operations.backup.plan import RestorePlan, RestoreRefusedError, plan_restore, running
from lakebound.settings import Settings
from lakebound.tables.iceberg.catalog_file import explained, files_of, open_existing, sqlite_file

_KEPT = frozenset({"desired.json", "desired.sign", "lease.json"})
"""Never missing while a pipeline's state is exchanged: they keep applications from starting, and epochs from going back."""
_BUSY_SECONDS = 5.0
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""What link(2) answers on a file system without hard links, or for a file that may have no further one."""


@dataclass(frozen=True)
class Restored:
    """What was done.

    Attributes:
        plan: As it was applied.
        aside: Folder that has the pipelines' state of before.
        catalog_aside: The catalog's file of before; None where there was none, or the backup holds none.
    """

    plan: RestorePlan
    aside: Path
    catalog_aside: Path | None


def apply_restore(settings: Settings, source: Path, approved: str, *, by: str) -> Restored:
    """Restore a backup as its plan says. Cut short, it leaves the pipelines held; plan and apply it again.

    Args:
        settings: Of this machine.
        source: The backup.
        approved: Hash of the plan.
        by: Who approved it.

    Raises:
        BackupError: It is damaged; nothing was changed.
        RestoreRefusedError: Something uses what would be replaced, or the plan is another one by now.
    """
    plan = plan_restore(settings, source)
    if plan.refusals:
        raise RestoreRefusedError(source, list(plan.refusals))
    if plan.hash != approved:
        raise RestoreRefusedError(
            source, [f"plan {approved} was approved, but what is there has changed and the plan is now {plan.hash}; look at it"]
        )
    aside = settings.home / "aside" / f"restore-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:6]}"
    make_folder(aside, make_private_folder)
    staged = aside / "staged"
    try:
        extract(source, plan.manifest, staged)
        catalog_aside = _restore(settings, plan, staged, aside, by)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
        with suppress(OSError):
            aside.rmdir()  # nothing was moved into it
    return Restored(plan, aside, catalog_aside)


def _restore(settings: Settings, plan: RestorePlan, staged: Path, aside: Path, by: str) -> Path | None:
    controls = {pipeline: ControlFolder(settings.home, pipeline) for pipeline in plan.epochs}
    touched = plan.manifest.pipelines if not plan.manifest.has_catalog else [*plan.manifest.pipelines, *plan.others]
    reason = f"restored from the backup of {plan.made_at}: look at it, then start it"
    for pipeline in touched:
        _hold(controls[pipeline], staged, aside, reason, by)
    # An application may have started until now; from here on none does.
    if alive := list(running(controls[pipeline] for pipeline in touched)):
        raise RestoreRefusedError(plan.source, [*alive, "the pipelines are held meanwhile, so plan again when that has ended"])
    catalog_aside = _exchange_catalog(settings, staged) if plan.manifest.has_catalog else None
    for pipeline in plan.manifest.pipelines:
        _exchange(controls[pipeline], staged / PIPELINES / pipeline, aside / pipeline)
        record_incident(
            controls[pipeline],
            "repair",
            f"restored from the backup of {plan.made_at}",
            facts={"backup": str(plan.source), "aside": str(aside), "catalog_aside": str(catalog_aside or "")},
            outcome="held until a person starts it",
            decision=Decision(by, approved_by=by, plan={"hash": plan.hash, "files": len(plan.manifest.files)}),
        )
    return catalog_aside


def _hold(control: ControlFolder, staged: Path, aside: Path, reason: str, by: str) -> None:
    """Hold a pipeline; what is about to be replaced in place is copied aside."""
    kept = aside / control.pipeline
    make_private_folder(kept)
    for name in sorted(_KEPT):
        if (control.folder / name).exists():
            shutil.copy2(control.folder / name, kept / name)
    restored = readable_desired(staged / PIPELINES / control.pipeline / control.desired.name)
    hold_restored(control, restored or readable_desired(control.desired) or Desired(), reason=reason, by=by)


def _exchange(control: ControlFolder, staged: Path, aside: Path) -> None:
    """Move a pipeline's state aside, and the backup's into its place; its logs stay."""
    with locked(control.repair):
        _raise_lease(control, staged / "lease.json")
        moved = _files(control.folder)
        for relative in moved:
            _move(control.folder / relative, aside / relative)
        restored = _files(staged)
        for relative in restored:
            _move(staged / relative, control.folder / relative)
            os.chmod(control.folder / relative, file_mode())
        sync_new((control.folder / relative for relative in restored), control.folder)
        sync_new((aside / relative for relative in moved), aside)


def _files(folder: Path) -> list[PurePosixPath]:
    """Return the files of the state that are exchanged, by their paths in the folder."""
    found = (PurePosixPath(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file())
    return [path for path in found if is_state(path) and path.name not in _KEPT]


def _raise_lease(control: ControlFolder, backup: Path) -> None:
    """Leave a lease that nobody holds, with the higher epoch of both."""
    here, found = readable_lease(control), None
    try:
        body = read_json(backup)
        found = None if body is None else Lease.model_validate(body)
    except ValueError:
        pass
    chosen = found or here
    if chosen is None:
        return
    epoch = max(lease.epoch for lease in (here, found) if lease is not None)
    with locked(control.lease):
        write_json(control.lease, chosen.model_copy(update={"epoch": epoch, "released": True}).model_dump(), durable=True)


def _move(source: Path, target: Path) -> None:
    make_private_folder(target.parent)
    os.replace(source, target)


def _exchange_catalog(settings: Settings, staged: Path) -> Path | None:
    """Put the backup's catalog into the place of this one, which no other process has open; one is there at each moment."""
    catalog = sqlite_file(settings.iceberg_catalog_uri)
    assert catalog is not None, "refused before"
    make_folder(catalog.parent)
    stamp = f"aside-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid.uuid4().hex[:6]}"
    copy, aside = catalog.with_name(f".{catalog.name}.{stamp}"), catalog.with_name(f"{catalog.name}.{stamp}")
    try:
        shutil.copyfile(staged / CATALOG, copy)
        sync_file(copy)
        kept = _keep_aside(catalog, aside)
        os.replace(copy, catalog)
    finally:
        copy.unlink(missing_ok=True)
    sync_folder(catalog.parent)
    return aside if kept else None


def _keep_aside(catalog: Path, aside: Path) -> bool:
    """Give the present catalog's files a second name; of the first ones only the catalog's own stays, for the next to replace.

    What SQLite keeps beside a database it would apply to the next one of this name.
    """
    _settle(catalog)
    there = [path for path in (*files_of(catalog), catalog.with_name(f"{catalog.name}-journal")) if path.exists()]
    for path in there:
        _keep(path, aside.with_name(f"{aside.name}{path.name.removeprefix(catalog.name)}"))
    sync_folder(catalog.parent)
    for path in there:
        if path != catalog:
            path.unlink()
    sync_folder(catalog.parent)
    return bool(there)


def _settle(catalog: Path) -> None:
    """Bring what is committed into the catalog's own file; where SQLite cannot do it, the files beside it are kept, too.

    Raises:
        CatalogLockedError: A process has opened it meanwhile.
    """
    if catalog.exists():
        with (
            suppress(sqlite3.DatabaseError),
            explained(catalog),
            closing(open_existing(catalog, "rw", _BUSY_SECONDS)) as opened,
        ):
            if opened.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                raise CatalogLockedError(catalog, holders_of_writes(files_of(catalog)))


def _keep(path: Path, aside: Path) -> None:
    """Give a file a second name, or copy it where the file system has no such names."""
    try:
        os.link(path, aside)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        try:
            shutil.copy2(path, aside)
            sync_file(aside)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
