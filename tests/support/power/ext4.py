"""A real file system whose power can be cut: ext4 in a file, which is told to stop without writing its journal.

``FS_IOC_SHUTDOWN`` with ``NOLOGFLUSH`` is how fstests cut the power: nothing that is in memory gets to the disk any more, and
the next mount finds what a cut would have left. Source: https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git (src/godown.c).
"""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2
_OPTIONS = "loop,data=writeback,noauto_da_alloc,commit=300"
"""As little as possible gets to the disk that nobody has synced."""


class PowerDisk:
    """ext4 in a file.

    Attributes:
        folder: Where it is mounted.
    """

    def __init__(self, folder: Path) -> None:
        """Make the file system, and mount it.

        Raises:
            OSError: It cannot be had on this machine; the text says why.
        """
        self.folder = folder / "disk"
        self.folder.mkdir()
        self._image = folder / "disk.img"
        with open(self._image, "wb") as file:
            file.truncate(256 << 20)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()

    def cut_power(self) -> None:
        """Lose what is not on the disk. Who writes gets errors from now on."""
        opened = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(opened, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(opened)

    def start_again(self) -> None:
        """Mount it as after a cut; nobody has a file of it open."""
        self.remove()
        self._mount()

    def remove(self) -> None:
        """Unmount it."""
        gc.collect()
        for attempt in range(50):
            try:
                _run("umount", str(self.folder))
                return
            except OSError:
                if attempt == 49:
                    raise
                time.sleep(0.1)

    def _mount(self) -> None:
        _run("mount", "-o", _OPTIONS, str(self._image), str(self.folder))


def _run(*command: str) -> None:
    found = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise OSError(f"there is no command {command[0]}")
    done = subprocess.run([found, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
