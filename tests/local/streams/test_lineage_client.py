"""Events reach a real OpenLineage server; one that is away, silent or of another opinion delays nothing."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.support.streams.lineage_server import LineageServer
from tests.support.waiting import STRETCH, wait_until

from lakebound.control.ports import free_port
from lakebound.landing.lineage_client import LineageClient, LineageEnd, open_client
from lakebound.landing.lineage_events import Landed, LineageRun, LineageTable
from lakebound.landing.lineage_names import DatasetName
from lakebound.landing.lineage_settings import LineageSettings

pytestmark = pytest.mark.local

RUN = LineageRun("01938c5e-0000-7000-8000-000000000000", "test", "orders", "kafka:9092", ("orders",), time.time(), "4.1.3")
TABLE = LineageTable("delta:orders", DatasetName("file", "/lake/orders"), None, "delta", pa.schema([("id", pa.int64())]))
KEY = "s3cret-key"


class Counter:
    """A table that holds ten rows more whenever it is asked."""

    def __init__(self) -> None:
        self.rows = 0

    def __call__(self) -> dict[str, Landed]:
        self.rows += 10
        return {TABLE.id: Landed(rows=self.rows, next_offsets={"orders": {0: self.rows}})}


@pytest.fixture
def server() -> Iterator[LineageServer]:
    running = LineageServer()
    yield running
    running.close()


@pytest.fixture
def table() -> Counter:
    return Counter()


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebound.landing.lineage_client.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("lakebound.landing.lineage_client.CONNECT_SECONDS", 0.3)


def client_of(settings: LineageSettings, table: Counter) -> LineageClient:
    return LineageClient(RUN, [TABLE], table, lambda: open_client(settings), interval_seconds=0.1)


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def rows_told(server: LineageServer) -> int:
    return sum(event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] for event in server.events)


def test_a_run_is_told_from_its_start_to_its_end(server: LineageServer, table: Counter) -> None:
    client = client_of(LineageSettings(url=server.url, api_key=KEY), table)
    client.start()
    wait_until(lambda: len(server.events) >= 3, 20, "three events")
    client.end(LineageEnd("COMPLETE"))
    assert client.wait(20)
    assert server.states[0] == "START" and server.states[-1] == "COMPLETE"
    assert set(server.states[1:-1]) == {"RUNNING"}
    assert set(server.keys) == {f"Bearer {KEY}"}
    assert rows_told(server) == table.rows


def test_a_server_of_another_opinion_gets_later_what_it_did_not_take(
    server: LineageServer, table: Counter, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(LineageSettings(url=server.url, api_key=KEY), table)
    server.status = 503
    client.start()
    wait_until(lambda: server.requests >= 3, 20, "three requests")
    server.status = 200
    wait_until(lambda: len(server.events) >= 2, 20, "two events")
    client.end(LineageEnd("FAIL", "the lease is lost"))
    assert client.wait(20)
    assert server.states[:2] == ["START", "RUNNING"] and server.states[-1] == "FAIL"
    assert rows_told(server) == table.rows, "rows of events that were not taken are told by the next one"
    (said,) = warnings_in(caplog)
    assert "HTTP 503" in said
    assert KEY not in caplog.text and server.url not in caplog.text


@pytest.mark.parametrize("is_there", [True, False], ids=["silent", "away"])
def test_a_server_that_does_not_answer_delays_nothing_and_is_told_of_once(
    server: LineageServer, table: Counter, caplog: pytest.LogCaptureFixture, is_there: bool
) -> None:
    server.is_silent.set()
    url = server.url if is_there else f"http://127.0.0.1:{free_port()}"
    client = client_of(LineageSettings(url=url), table)
    before = time.monotonic()
    client.start()
    assert time.monotonic() - before < STRETCH
    wait_until(lambda: table.rows >= 30, 20, "three attempts")
    before = time.monotonic()
    client.end(LineageEnd("COMPLETE"))
    assert time.monotonic() - before < STRETCH
    client.wait(5)
    assert time.monotonic() - before < 6 * STRETCH
    assert server.events == []
    assert len(warnings_in(caplog)) == 1, caplog.text


def test_the_wait_for_the_last_event_is_bounded(server: LineageServer, table: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebound.landing.lineage_client.CONNECT_SECONDS", 60.0)
    server.is_silent.set()
    client = client_of(LineageSettings(url=server.url), table)
    client.start()
    wait_until(lambda: server.requests == 1, 20, "a request")
    client.end(LineageEnd("COMPLETE"))
    before = time.monotonic()
    assert not client.wait(0.2)
    assert time.monotonic() - before < 30


def test_the_file_of_openlineage_says_where_events_go(
    tmp_path: Path, server: LineageServer, table: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "openlineage.yml"
    file.write_text(f"transport: {{type: http, url: '{server.url}', auth: {{type: api_key, apiKey: {KEY}}}}}")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(file))
    client = client_of(LineageSettings(config=file), table)
    client.start()
    client.end(LineageEnd("ABORT"))
    assert client.wait(20)
    assert server.states == ["START", "ABORT"]
    assert set(server.keys) == {f"Bearer {KEY}"}


def test_a_file_without_a_transport_sends_nothing_and_prints_nothing(
    tmp_path: Path,
    table: Counter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "openlineage.yml"
    file.write_text("filters: []")
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(file))
    client = client_of(LineageSettings(config=file), table)
    client.start()
    assert client.wait(20)
    assert table.rows == 0
    assert "names no transport" in caplog.text
    assert RUN.run_id not in capsys.readouterr().out
