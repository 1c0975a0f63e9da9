"""Writes a backup while streams run, and reads one: a private tar file, whose list has the sum of each file.

A file of the state is replaced in one step or grows by lines, so it is copied as it is at one moment. The catalog is copied by
SQLite's own backup, which a commit beside it does not disturb.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import os
import socket
import sqlite3
import tarfile
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO

from pydantic import ValidationError

from lakebound import __version__
from lakebound.control.applications import pipelines_with_state
from lakebound.durable import sync_folder
from lakebound.operations.backup.manifest import (
    CATALOG,
    FORMAT,
    MANIFEST,
    PIPELINES,
    BackupError,
    HeldFile,
    Manifest,
    is_safe,
    is_state,
)
from lakebound.settings import Settings
from lakebound.spec.state_store import refuse_with_shared_state
from lakebound.tables.iceberg.catalog_file import explained, open_existing, sqlite_file

_BUSY_SECONDS = 60.0
_CHUNK_BYTES = 1 << 20
_DAMAGE = (OSError, EOFError, KeyError, tarfile.TarError, zlib.error)
"""What reading an archive raises that is cut, damaged or none."""


INSTEAD = "Switch on versions of the bucket, or copy it with the tools of the store"
"""Of a backup, where state is shared."""


def write_backup(settings: Settings, target: Path) -> tuple[Path, Manifest]:
    """Make a backup, and return where it is and what it holds.

    Args:
        settings: Of this machine.
        target: The file to make, or a folder, in which the file gets the time as its name.

    Raises:
        BackupError: There is nothing to copy, or the file is there already.
        CatalogLockedError: Another process holds the catalog's lock.
    """
    refuse_with_shared_state("lakebound backup", INSTEAD)
    now = time.time()
    names: Iterator[Path] = iter([target])
    if target.is_dir():
        folder, stem = target, f"lakebound-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(now))}"
        names = (folder / f"{stem}{'' if number == 1 else f'-{number}'}.tar.gz" for number in itertools.count(1))
        target = folder / f"{stem}.tar.gz"
    elif target.exists():
        raise BackupError(target, "this file exists already; choose another name")
    if not target.parent.is_dir():
        raise BackupError(target, f"the folder {target.parent} does not exist")
    partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        with open(partial, "xb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            manifest = _write(settings, file, partial, now)
            file.flush()
            os.fsync(file.fileno())
        made = _publish(partial, names)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(made.parent)
    return made, manifest


def read_manifest(source: Path) -> Manifest:
    """Return what a backup says that it holds; the files are not compared with it yet.

    Raises:
        BackupError: It is no backup, or one of a later version.
    """
    try:
        with gzip.open(source) as whole:
            while whole.read(_CHUNK_BYTES):  # its own sum, at its end, covers the list, too
                pass
        with tarfile.open(source, "r:gz") as archive:
            manifest = Manifest.model_validate_json(_member(source, archive, MANIFEST).read())
    except FileNotFoundError:
        raise BackupError(source, "this file does not exist") from None
    except (*_DAMAGE, ValidationError) as exc:
        raise BackupError(source, f"it is not a backup, or it is damaged ({type(exc).__name__})") from exc
    if manifest.format > FORMAT:
        raise BackupError(source, f"version {manifest.writer} of Lakebound made it; restore it with that version")
    if unsafe := [file.path for file in manifest.files if not is_safe(file.path)]:
        raise BackupError(source, f"it holds {unsafe[0]}, which no backup of Lakebound has")
    return manifest


def extract(source: Path, manifest: Manifest, folder: Path) -> None:
    """Write the files of a backup into an empty folder, each compared with its sum.

    Args:
        source: The backup.
        manifest: Its list.
        folder: Where they go, by their paths in the archive.

    Raises:
        BackupError: A file is missing, or is not the one that was copied.
    """
    try:
        with tarfile.open(source, "r:gz") as archive:
            for held in manifest.files:
                content = _member(source, archive, held.path).read(held.size_bytes + 1)
                if hashlib.sha256(content).hexdigest() != held.sha256:
                    raise BackupError(source, f"{held.path} is not what was copied: the backup is damaged; nothing was changed")
                path = folder / held.path
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
                    file.write(content)
    except _DAMAGE as exc:
        raise BackupError(source, f"it cannot be read: {type(exc).__name__} {exc}; nothing was changed") from exc


def pointers_of(catalog: Path) -> dict[str, str]:
    """Return the metadata file that a SQLite catalog names, by ``namespace.table``; empty where it knows no table.

    Raises:
        sqlite3.DatabaseError: The file is no catalog.
    """
    with closing(open_existing(catalog, "ro", _BUSY_SECONDS)) as connection:
        try:
            rows = connection.execute("SELECT table_namespace, table_name, metadata_location FROM iceberg_tables").fetchall()
        except sqlite3.OperationalError as exc:
            if "no such table" in str(exc):
                return {}
            raise
    return {f"{namespace}.{name}": str(location) for namespace, name, location in sorted(rows)}


def _member(source: Path, archive: tarfile.TarFile, path: str) -> IO[bytes]:
    """Open a file of an archive; a link in it would be followed, also to itself."""
    member = archive.getmember(path)
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise BackupError(
            source, f"{path} in it is a link, a folder or a device, which no backup of Lakebound has; nothing was changed"
        )
    return content


def _publish(partial: Path, names: Iterable[Path]) -> Path:
    """Give a finished file the first of the names that is free: another backup may have got one meanwhile.

    Raises:
        BackupError: None is free.
    """
    for target in names:
        with suppress(FileExistsError):
            try:
                os.link(partial, target)
            except FileExistsError:
                raise
            except OSError:  # a file system without hard links
                os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                os.replace(partial, target)
            return target
    raise BackupError(target, "this file exists already; choose another name")


def _write(settings: Settings, file: io.BufferedWriter, beside: Path, now: float) -> Manifest:
    held: list[HeldFile] = []
    pointers: dict[str, str] = {}

    def add(path: str, content: bytes) -> None:
        info = tarfile.TarInfo(path)
        info.size, info.mode, info.mtime = len(content), 0o600, int(now)
        archive.addfile(info, io.BytesIO(content))

    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for path, content in _state(settings):
            held.append(HeldFile(path=path, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()))
            add(path, content)
        catalog = sqlite_file(settings.iceberg_catalog_uri)
        if catalog is not None and catalog.is_file():
            with TemporaryDirectory(prefix=f"{beside.name}.", dir=beside.parent) as folder:
                copy = Path(folder) / CATALOG
                _copy_catalog(catalog, copy)
                content, pointers = copy.read_bytes(), pointers_of(copy)
            held.append(HeldFile(path=CATALOG, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()))
            add(CATALOG, content)
        if not held:
            raise BackupError(beside, f"there is nothing to copy: {settings.home} has no pipelines, and there is no catalog")
        manifest = Manifest(
            format=FORMAT,
            writer=__version__,
            created_at=now,
            host=socket.gethostname(),
            home=settings.home,
            warehouse=settings.warehouse,
            files=tuple(held),
            iceberg_tables=pointers,
        )
        add(MANIFEST, manifest.model_dump_json(indent=1).encode())
    return manifest


def _state(settings: Settings) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of every file of the pipelines' state."""
    for control in pipelines_with_state(settings):
        for path in sorted(control.folder.rglob("*")):
            relative = PurePosixPath(path.relative_to(control.folder))
            if not is_state(relative) or path.is_symlink() or not path.is_file():
                continue
            try:
                content = path.read_bytes()
            except FileNotFoundError:
                continue  # its application removed it this moment
            yield str(PurePosixPath(PIPELINES, control.pipeline, relative)), content


def _copy_catalog(source: Path, copy: Path) -> None:
    with (
        explained(source),
        closing(open_existing(source, "ro", _BUSY_SECONDS)) as old,
        closing(sqlite3.connect(copy)) as new,
    ):
        old.backup(new)
        found = new.execute("PRAGMA integrity_check").fetchone()
    if found != ("ok",):
        raise BackupError(source, "the catalog is damaged (PRAGMA integrity_check); nothing was copied")
