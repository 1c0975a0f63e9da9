"""An HTTP server that answers what a test says: a schema registry as no real one would be."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import urlsplit


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that hang up."""


@dataclass(frozen=True)
class Said:
    """An answer.

    Attributes:
        body: What is sent; an iterator is sent as it goes, without its length.
        status: Of HTTP.
        headers: Besides the length.
    """

    body: bytes | Iterator[bytes] = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """A request.

    Attributes:
        path: With what is after the question mark.
        authorization: Header of that name.
    """

    path: str
    authorization: str | None


@dataclass
class SaidAnswers:
    """A running server.

    Attributes:
        url: Its address.
        seen: The requests that came.
    """

    url: str
    seen: list[Seen]


HANG_UP = Said(status=0)
"""No answer: the connection is closed."""


@contextmanager
def answering(say: Callable[[str], Said], tls: ssl.SSLContext | None = None) -> Iterator[SaidAnswers]:
    """Run a server of this machine.

    Args:
        say: Gets the path without what is after the question mark, and returns the answer.
        tls: Certificate of a server that speaks HTTPS.
    """
    with answering_requests(lambda request: say(urlsplit(request.path).path), tls) as server:
        yield server


@contextmanager
def answering_requests(say: Callable[[Seen], Said], tls: ssl.SSLContext | None = None) -> Iterator[SaidAnswers]:
    """Run the same server, which answers by all that is in a request."""
    seen: list[Seen] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version: ClassVar[str] = "HTTP/1.1"
        disable_nagle_algorithm: ClassVar[bool] = True  # Or the body waits 40 ms behind the head.

        def do_GET(self) -> None:
            request = Seen(self.path, self.headers.get("Authorization"))
            seen.append(request)
            said = say(request)
            if said.status == 0:
                self.close_connection = True
                return
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            if isinstance(said.body, bytes):
                self.send_header("Content-Length", str(len(said.body)))
                self.end_headers()
                self.wfile.write(said.body)
                return
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            with suppress(OSError):  # The client hangs up.
                for part in said.body:
                    self.wfile.write(part)
                    self.wfile.flush()

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield SaidAnswers(f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}", seen)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
