"""An OpenLineage server on this machine, which may also be silent, slow, or of another opinion."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LineageServer:
    """Keeps the events that it takes, and what they came with.

    Attributes:
        status: What it answers.
        is_silent: While set, it reads a request and answers nothing.
        events: Those that it took.
        keys: The headers Authorization, of all requests.
        requests: How many came, those included that it did not answer.
    """

    def __init__(self, port: int = 0) -> None:
        self.status = 200
        self.is_silent = threading.Event()
        self.events: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.requests = 0
        self._goes_on = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                server.requests += 1
                server.keys.append(self.headers["Authorization"])
                if server.is_silent.is_set():
                    server._goes_on.wait()
                    return
                if server.status == 200:
                    server.events.append(json.loads(body))
                self.send_response(server.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def states(self) -> list[str]:
        """What became of the run, event by event."""
        return [event["eventType"] for event in self.events]

    def outputs(self, name: str) -> list[dict[str, Any]]:
        """Return what each event said of an output of this name."""
        return [output for event in self.events for output in event["outputs"] if output["name"] == name]

    def close(self) -> None:
        """End it; who waits for an answer gets none."""
        self._goes_on.set()
        self._server.shutdown()
        self._server.server_close()
