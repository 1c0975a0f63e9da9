"""Those who get alerts, as real servers on this machine: an HTTP endpoint and an SMTP server."""

from __future__ import annotations

import email
import email.policy
import json
import threading
import time
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from lakebound.control.ports import free_port


class WebhookEndpoint:
    """Keeps what it is sent, with the time at which it came, and the paths; may answer with an error.

    A GET is a heartbeat: of these it keeps time and path.
    """

    def __init__(self, port: int = 0) -> None:
        received: list[tuple[float, dict[str, Any]]] = []
        self.paths: list[str] = []
        self.heartbeats: list[tuple[float, str]] = []
        self.status = 200
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.paths.append(self.path)
                if endpoint.status == 200:
                    received.append((time.time(), json.loads(body)))
                self.send_response(endpoint.status)
                self.end_headers()

            def do_GET(self) -> None:
                endpoint.heartbeats.append((time.time(), self.path))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self.received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """What came, in its order."""
        return [body for _, body in self.received]

    def of(self, pipeline: str) -> list[tuple[float, dict[str, Any]]]:
        """Return what came for one pipeline."""
        return [(at, body) for at, body in self.received if body["pipeline"] == pipeline]

    def alerts(self) -> list[dict[str, Any]]:
        """Return every alert of every message."""
        return [one for _, body in self.received for one in body.get("alerts", ())]

    def close(self) -> None:
        """Stop listening; whoever calls then is refused."""
        self._server.shutdown()
        self._server.server_close()


class Mailbox:
    """An SMTP server that keeps the mails that it is given."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self._controller = Controller(self, hostname="127.0.0.1", port=free_port())
        self._controller.start()
        self.port: int = self._controller.port

    async def handle_DATA(self, _: SMTP, __: Session, envelope: Envelope) -> str:
        """Take a mail."""
        content = envelope.content
        assert isinstance(content, bytes)
        mail = email.message_from_bytes(content, policy=email.policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 OK"

    def close(self) -> None:
        """Stop listening."""
        self._controller.stop()
