"""A stand-in for Kubernetes' API server: it keeps what is created, and schedules and starts nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_DISCOVERY: dict[str, dict[str, Any]] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [{"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "delete"]}],
    },
}


@dataclass
class KubernetesApi:
    """What the server holds.

    Attributes:
        url: Its address.
        objects: What was created, by path.
        requests: What was asked: verb and path.
        refusal: Answers every creation, if it is set: status code and message.
    """

    url: str = ""
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    refusal: tuple[int, str] | None = None

    def pod(self, namespace: str, name: str) -> dict[str, Any]:
        """Return a pod that was created."""
        return self.objects[f"/api/v1/namespaces/{namespace}/pods/{name}"]

    def write_kubeconfig(self, path: Path) -> None:
        """Write a file by which clients find the server."""
        cluster = {"name": "stand-in", "cluster": {"server": self.url}}
        context = {"name": "stand-in", "context": {"cluster": "stand-in", "user": "test"}}
        users = [{"name": "test", "user": {}}]
        body = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "stand-in"}
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **body}))


class _Server(ThreadingHTTPServer):
    def __init__(self, api: KubernetesApi) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api = api


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        path = self._path()
        found = _DISCOVERY.get(path) or self.server.api.objects.get(path)
        self._answer(200, found) if found else self._failure(404, "NotFound", f"{path} not found")

    def do_POST(self) -> None:
        api, path, body = self.server.api, self._path(), self._body()
        if api.refusal is not None:
            self._failure(api.refusal[0], "Forbidden", api.refusal[1])
            return
        place = f"{path}/{body['metadata']['name']}"
        if place in api.objects:
            self._failure(409, "AlreadyExists", f"{place} already exists")
            return
        body["metadata"] |= {"uid": f"uid-{len(api.objects)}", "namespace": path.split("/")[4]}
        api.objects[place] = body
        self._answer(201, body)

    def do_PATCH(self) -> None:
        objects, path, body = self.server.api.objects, self._path(), self._body()
        objects[path] = {**objects.get(path, {}), **body}
        self._answer(200, objects[path])

    do_PUT = do_PATCH

    def do_DELETE(self) -> None:
        path = self._path()
        self._body()
        found = self.server.api.objects.pop(path, None)
        self._answer(200, found) if found else self._failure(404, "NotFound", f"{path} not found")

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _path(self) -> str:
        path = self.path.partition("?")[0]
        self.server.api.requests.append((self.command, path))
        return path

    def _body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        return found

    def _answer(self, code: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _failure(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
        self._answer(code, {**status, "reason": reason, "message": message, "code": code})


@contextmanager
def kubernetes_api() -> Iterator[KubernetesApi]:
    """Run a server, on the loopback interface."""
    api = KubernetesApi()
    server = _Server(api)
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
