"""The broker's command and the signs of health of the containers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from lakebound.errors import ServiceError
from lakebound.local.broker_config import SaslUser, log4j2_properties, server_properties
from lakebound.local.container import health
from lakebound.local.container.broker import PORTS, main, read_password


def test_only_the_listener_with_a_login_is_reached_from_outside() -> None:
    text = server_properties(Path("/data"), PORTS, SaslUser("lake", "do not tell"), "kafka")
    found = dict(line.split("=", 1) for line in text.splitlines())
    assert found["listeners"] == "PLAINTEXT://127.0.0.1:19092,SASL_PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:19093"
    assert found["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092,SASL_PLAINTEXT://kafka:9092"


def test_a_container_s_broker_also_writes_to_the_console() -> None:
    log = Path("/b/broker.log")
    assert "rootLogger.appenderRef.console.ref = console" in log4j2_properties(log, to_console=True)
    assert "console" not in log4j2_properties(log)


def test_a_log_in_a_folder_with_any_name_is_found_by_java() -> None:
    """Java reads properties as Latin-1."""
    written = log4j2_properties(Path("/größe/\U0001f642/kafka.log"))
    assert written.isascii()
    assert "fileName = /gr\\u00f6\\u00dfe/\\ud83d\\ude42/kafka.log\n" in written


def test_a_broker_without_its_password_says_which_file_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kafka"
    assert main(["run", "--folder", str(tmp_path / "b"), "--password-file", str(file)]) == 1
    assert str(file) in capsys.readouterr().err
    file.write_text("\n")
    with pytest.raises(ServiceError, match="is empty"):
        read_password(file)


@pytest.fixture
def page() -> Iterator[tuple[str, dict[str, object]]]:
    """The address of a server, and the answer that it gives."""
    answer: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answer.get(self.path)).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", answer
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("status", "code"), [("healthy", 0), ("unhealthy", 1), (None, 1)])
def test_a_component_is_as_healthy_as_airflow_says(page: tuple[str, dict[str, object]], status: str | None, code: int) -> None:
    url, answer = page
    answer["/api/v2/monitor/health"] = {"triggerer": {"status": status}, "scheduler": {"status": "healthy"}}
    assert health.main(["airflow", "triggerer", "--url", url]) == code
    assert health.main(["airflow", "dag_processor", "--url", url]) == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"status": "ALIVE"}, 0),
        ({"status": "RECOVERING"}, 1),
        ({"id": "worker-1", "masterwebuiurl": "http://m:8090"}, 0),
        ({"id": "worker-1", "masterwebuiurl": ""}, 1),
        ([], 1),
    ],
)
def test_a_daemon_of_spark_is_healthy_when_it_works(page: tuple[str, dict[str, object]], body: object, code: int) -> None:
    url, answer = page
    answer["/json/"] = body
    assert health.main(["spark", f"{url}/json/"]) == code


def test_a_service_that_does_not_answer_is_not_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    assert health.main(["spark", "http://127.0.0.1:1/json/"]) == 1
    assert "refused" in capsys.readouterr().err
