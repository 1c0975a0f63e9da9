"""The REST client, against a server that answers as Airflow's does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from tenacity import wait_none

from lakebound.local.airflow_client import AirflowAnswerError, AirflowClient

pytestmark = pytest.mark.usefixtures("no_waiting")

LARGEST_PAGE = 40
DATABASE_ERROR = {"detail": {"reason": "Database error", "statement": "hidden", "orig_error": "hidden", "message": "..."}}


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AirflowClient._ask.retry, "wait", wait_none())  # type: ignore[attr-defined]


@contextmanager
def server_with(refusals: list[tuple[int, object]]) -> Iterator[tuple[AirflowClient, list[object]]]:
    """A server without pools which refuses the first attempts to make one; yields a client and the pools it made."""
    made: list[object] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = parse_qs(urlsplit(self.path).query)
            first, count = int(asked["offset"][0]), min(int(asked["limit"][0]), LARGEST_PAGE)
            self._answer(200, {"pools": made[first : first + count], "total_entries": len(made)})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/auth/token":
                self._answer(201, {"access_token": "token"})
            elif refusals:
                self._answer(*refusals.pop(0))
            else:
                made.append(body)
                self._answer(201, body)

        def _answer(self, status: int, body: object) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body, separators=(",", ":")).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Keep the tests' output free of requests."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        with AirflowClient(f"http://127.0.0.1:{server.server_port}", "admin", "admin") as client:
            yield client, made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_what_the_database_refused_is_asked_again() -> None:
    with server_with([(500, DATABASE_ERROR), (500, DATABASE_ERROR)]) as (client, made):
        client.ensure_pool("one_at_a_time", 1, "a pool")
        assert [pool["name"] for pool in made if isinstance(pool, dict)] == ["one_at_a_time"]


def test_another_refusal_is_not_asked_again() -> None:
    with server_with([(500, {"detail": "no"})]) as (client, made), pytest.raises(AirflowAnswerError, match="500"):
        client.ensure_pool("one_at_a_time", 1, "a pool")
    assert made == []


def test_a_database_that_goes_on_refusing_is_said() -> None:
    with server_with([(500, DATABASE_ERROR)] * 9) as (client, made), pytest.raises(AirflowAnswerError, match="Database error"):
        client.ensure_pool("one_at_a_time", 1, "a pool")
    assert made == []


def test_a_list_of_several_pages_is_read_to_its_end() -> None:
    with server_with([]) as (client, made):
        made += [{"name": f"pool {number}"} for number in range(2 * LARGEST_PAGE + 1)]
        client.ensure_pool(f"pool {2 * LARGEST_PAGE}", 1, "one of the last page")
        assert len(made) == 2 * LARGEST_PAGE + 1
