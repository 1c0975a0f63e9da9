"""The second port of the server, by which a test chooses faults and reads the log."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.s3.access import AccessKey, Permission
from tests.support.s3.faults import fault_of_json
from tests.support.s3.http_side import HttpSide, Listener
from tests.support.s3.s3_error import S3Error
from tests.support.s3.service import Service


def access_key_of_json(sent: Mapping[str, Any]) -> AccessKey:
    """Return the key that was sent as JSON."""
    permissions = sent.get("permissions")
    if permissions is not None:
        permissions = tuple(Permission(tuple(one["actions"]), one["prefix"]) for one in permissions)
    return AccessKey(**{**sent, "permissions": permissions})


def start_control(service: Service, side: HttpSide, host: str, port: int) -> tuple[str, int]:
    """Listen for the test's orders; return where."""

    def away(sent: Mapping[str, Any]) -> None:
        side.go_away(sent["seconds"], sent["refuse"])

    orders: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
        "POST /faults": lambda sent: service.faults.add(fault_of_json(sent)),
        "POST /faults/remove": lambda sent: service.faults.remove(sent["number"]),
        "POST /faults/clear": lambda _: service.faults.clear(),
        "GET /faults": lambda _: service.faults.hits(),
        "POST /away": away,
        "POST /back": lambda _: side.come_back(),
        "POST /access-keys": lambda sent: service.keys.put(access_key_of_json(sent)),
        "POST /access-keys/remove": lambda sent: service.keys.remove(sent["access_key_id"]),
        "POST /buckets": lambda sent: service.store.create_bucket(sent["name"]),
        "GET /mark": lambda _: service.log.mark(),
        "GET /requests": lambda sent: [asdict(request) for request in service.log.since(int(sent["since"]))],
    }
    listener = Listener((host, port), _handler_class(orders))
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    return listener.server_name, listener.server_port


def _handler_class(orders: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 64 * 1024

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            address = urlsplit(self.path)
            sent = json.loads(body) if body else {name: values[0] for name, values in parse_qs(address.query).items()}
            order = orders.get(f"{self.command} {address.path}")
            try:
                if order is None:
                    raise ValueError(f"no such order: {self.command} {address.path}")
                status, said = 200, order(sent)
            except (S3Error, KeyError, TypeError, ValueError) as error:
                status, said = 400, f"{type(error).__name__}: {error}"
            answer = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = serve

        def log_message(self, *_: Any) -> None:
            return

    return Handler
