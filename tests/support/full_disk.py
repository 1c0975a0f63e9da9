"""A small file system that is really full, read-only, or has room again: tmpfs or ext4. Needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_BLOCK = 64 * 1024


class NotMountedError(Exception):
    """This machine, or this user, may mount nothing."""


class SmallDisk:
    """tmpfs of a few megabytes, for a block.

    Attributes:
        folder: Where it is mounted.
    """

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "lakebound-test", str(folder))

    def __enter__(self) -> SmallDisk:
        return self

    def __exit__(self, *_: object) -> None:
        """Unmount it; what is on it is gone."""
        _run("umount", "-l", str(self.folder))

    def fill(self) -> None:
        """Write until nothing more fits, not even a byte."""
        with open(self._filler, "ab", buffering=0) as file:
            for size in (_BLOCK, 1):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    continue

    def make_room(self) -> None:
        """Delete what filled it."""
        self._filler.unlink()

    def make_read_only(self, wanted: bool = True) -> None:
        """Mount it read-only, or as before."""
        _run("mount", "-o", f"remount,{'ro' if wanted else 'rw'}", str(self.folder))

    @property
    def _filler(self) -> Path:
        return self.folder / "somebody-elses-file"


@contextmanager
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[SmallDisk]:
    """Have a small disk at a folder; skips the test where nothing can be mounted."""
    try:
        disk = SmallDisk(folder, megabytes)
    except NotMountedError as exc:
        pytest.skip(f"no small file system can be mounted here: {exc}")
    with disk:
        yield disk


def _run(*command: str) -> None:
    found = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:/usr/bin:/bin")
    if found is None:
        raise NotMountedError(f"there is no command {command[0]}")
    done = subprocess.run([found, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMountedError(f"{' '.join(command)}: {done.stderr.strip()}")
