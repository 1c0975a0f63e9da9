"""The sockets of the server: it reads requests whole, sends answers, and breaks connections where a fault wants it."""

from __future__ import annotations

import select
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.support.s3.answer import Answer, refusal
from tests.support.s3.call import Call
from tests.support.s3.s3_error import S3Error
from tests.support.s3.service import Outcome, Service

_LOOK_EVERY_SECONDS = 0.05


class Listener(ThreadingHTTPServer):
    """Accepts connections; each has a thread."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.connections: set[socket.socket] = set()

    def server_bind(self) -> None:
        """Bind without asking for the host's name, which may take seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[0], self.server_address[1]

    def close_all(self) -> None:
        """Close the listening socket and every connection."""
        self.shutdown()
        self.server_close()
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def handle_error(self, *_: Any) -> None:
        """A client that went away is no event."""


class _S3Listener(Listener):
    def __init__(self, address: tuple[str, int], service: Service, hangs: threading.Event) -> None:
        super().__init__(address, _Connection)
        self.service = service
        self.hangs = hangs


class HttpSide:
    """The port on which S3 is served, and the times when nothing answers there."""

    def __init__(self, service: Service, host: str, port: int) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._hangs = threading.Event()
        self._window = 0
        # Held, never listening: while the listener is away, nobody else gets the port.
        self._holder = socket.socket()
        self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._holder.bind((host, port))
        self.address: tuple[str, int] = self._holder.getsockname()
        self._listener: Listener | None = None
        self._listen()

    def go_away(self, seconds: float | None, refuse: bool) -> None:
        """Answer nothing for a time, or until `come_back`; connections are refused, or accepted and left hanging."""
        with self._lock:
            self._window += 1
            window = self._window
            if refuse and self._listener is not None:
                self._listener.close_all()
                self._listener = None
            if not refuse:
                self._hangs.set()
        if seconds is not None:
            timer = threading.Timer(seconds, self.come_back, [window])
            timer.daemon = True
            timer.start()

    def come_back(self, window: int | None = None) -> None:
        """End the time without answers; with ``window``, only if it is still that one."""
        with self._lock:
            if window is None or window == self._window:
                self._hangs.clear()
                self._listen()

    def _listen(self) -> None:
        if self._listener is None:
            self._listener = _S3Listener(self.address, self._service, self._hangs)
            threading.Thread(target=self._listener.serve_forever, args=[_LOOK_EVERY_SECONDS], daemon=True).start()


class _Connection(BaseHTTPRequestHandler):
    """One connection of a client: requests one after another."""

    protocol_version = "HTTP/1.1"
    server_version = "TestS3"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    began = 0.0
    server: _S3Listener

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def parse_request(self) -> bool:
        self.began = time.monotonic()
        return super().parse_request()

    def handle_expect_100(self) -> bool:
        """Say at once that the body may come: a client waits a second for this."""
        go_on = super().handle_expect_100()
        self.wfile.flush()
        return go_on

    def serve(self) -> None:
        body = self._body()
        if body is None:
            self.close_connection = True
            return
        call = Call(self.command, self.path, self.headers, body)
        try:
            call.path, call.query  # noqa: B018 - both must be readable
        except S3Error as error:
            self._send(refusal(error, ""))
            return
        if self.server.hangs.is_set():
            self.server.service.turned_away(call, self.began)
            self._hold(self.server.hangs.is_set)
            return
        self._finish_as(self.server.service.outcome(call, self.began))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve

    def _finish_as(self, outcome: Outcome) -> None:
        fault = outcome.fault
        if fault is None or outcome.whole:
            self._send(outcome.answer)
        elif fault.kind == "half body":
            self._send(outcome.answer, len(outcome.answer.body) // 2)
            self.close_connection = True
        elif fault.kind == "silence":
            faults, until = self.server.service.faults, time.monotonic() + fault.seconds
            generation = faults.generation
            self._hold(lambda: time.monotonic() < until and faults.generation == generation)
        else:
            self.close_connection = True

    def _send(self, answer: Answer, most: int | None = None) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("x-amz-request-id", "0")
        if answer.status not in (204, 304):
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD" and answer.status not in (204, 304):
            self.wfile.write(answer.body if most is None else answer.body[:most])
        self.wfile.flush()

    def _hold(self, wanted: Callable[[], bool]) -> None:
        """Keep the connection without an answer while it is wanted and the client is there."""
        self.close_connection = True
        while wanted():
            readable, _, _ = select.select([self.connection], [], [], _LOOK_EVERY_SECONDS)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return
            if readable:
                time.sleep(_LOOK_EVERY_SECONDS)

    def _body(self) -> bytes | None:
        """Return the request's body; None if the client went away before its end."""
        if "chunked" in (self.headers.get("transfer-encoding") or "").lower():
            return self._chunked_body()
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        return body if len(body) == length else None

    def _chunked_body(self) -> bytes | None:
        chunks: list[bytes] = []
        while line := self.rfile.readline():
            size = int(line.partition(b";")[0], 16)
            if size == 0:
                while self.rfile.readline() not in (b"\r\n", b"\n", b""):
                    pass
                return b"".join(chunks)
            chunk = self.rfile.read(size)
            if len(chunk) < size or not self.rfile.readline():
                return None
            chunks.append(chunk)
        return None

    def log_message(self, *_: Any) -> None:
        return
