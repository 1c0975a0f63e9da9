"""The scheduler of the embedded Airflow starts no task before the API server answers tasks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from lakebound_airflow import standalone


def test_the_scheduler_runs_when_the_api_server_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standalone, "_NEEDED", ())
    monkeypatch.setattr(standalone, "POLL_SECONDS", 0.0)
    done: list[str] = []

    def is_ready() -> bool:
        done.append("asked")
        return len(done) == 3

    standalone.run_scheduler(is_ready, lambda: done.append("ran"))
    assert done == ["asked", "asked", "asked", "ran"]


def test_only_the_scheduler_waits() -> None:
    assert standalone.command_of(["scheduler"]) == [sys.executable, "-m", "lakebound_airflow.standalone", "scheduler"]
    for name in ("api-server", "dag-processor", "triggerer"):
        assert standalone.command_of([name]) == [sys.executable, "-m", "airflow", name]


@pytest.fixture
def server() -> Iterator[tuple[str, list[int]]]:
    statuses: list[int] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(statuses.pop(0) if self.path == "/execution/health" else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep the tests' output free of requests."""

    one = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{one.server_port}/execution/", statuses
    one.shutdown()
    one.server_close()
    thread.join()


def test_a_server_answers_when_the_api_of_the_tasks_is_healthy(server: tuple[str, list[int]]) -> None:
    url, statuses = server
    statuses += [503, 200]
    assert [standalone.answers(url), standalone.answers(url)] == [False, True]
    assert not standalone.answers("http://127.0.0.1:1/execution/")
