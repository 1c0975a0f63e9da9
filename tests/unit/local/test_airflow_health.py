"""How another Airflow is seen from here, against a server that answers as Airflow's does."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.streams.command_line import answer, lakebound, settings
from tests.support.waiting import STRETCH

from lakebound.control.airflow_health import AirflowHealth, ComponentHealth, components_of
from lakebound.control.starters import who_starts
from lakebound.errors import SettingError
from lakebound.local.airflow_view import airflow_health, look_at_airflow
from lakebound.settings import Settings, load_airflow_access

__all__ = ["settings"]

TOKEN, PASSWORD = "a-token", "pass:word"


class CompanyAirflow(ThreadingHTTPServer):
    """An Airflow below a path, as behind a company's proxy."""

    daemon_threads = True

    def __init__(self) -> None:
        self.health: dict[str, Any] = {name: {"status": "healthy"} for name in ("metadatabase", "scheduler", "triggerer")}
        self.paused = {"ingest__orders": True, "maintain__orders": False}
        self.raw: bytes | None = None
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/airflow"


class Handler(BaseHTTPRequestHandler):
    server: CompanyAirflow

    def do_GET(self) -> None:
        path = self.path.partition("?")[0].removeprefix("/airflow/api/v2")
        if path == "/monitor/health":
            return self._answer(200, self.server.health)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer(401, {"detail": "who are you?"})
        dags = [{"dag_id": name, "is_paused": paused} for name, paused in self.server.paused.items()]
        if path == "/dags":
            return self._answer(200, {"dags": dags, "total_entries": len(dags)})
        known = {f"/dags/{dag['dag_id']}": dag for dag in dags}
        return self._answer(200, known[path]) if path in known else self._answer(404, {"detail": "not found"})

    def do_POST(self) -> None:
        login = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        right = self.path == "/airflow/auth/token" and login == {"username": "ada", "password": PASSWORD}
        self._answer(201 if right else 401, {"access_token": TOKEN} if right else {"detail": "no"})

    def do_PATCH(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.paused["ingest__orders"] = asked["is_paused"]
        self._answer(200, {})

    def _answer(self, status: int, body: object) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(self.server.raw or json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep the tests' output free of requests."""


@pytest.fixture
def company(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[CompanyAirflow]:
    server = CompanyAirflow()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("LAKEBOUND_AIRFLOW_URL", server.url + "/")
    monkeypatch.delenv("LAKEBOUND_AIRFLOW_LOGIN_FILE", raising=False)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def log_in(monkeypatch: pytest.MonkeyPatch, folder: Path, text: str) -> None:
    (folder / "login").touch(mode=0o600)
    (folder / "login").write_text(text)
    monkeypatch.setenv("LAKEBOUND_AIRFLOW_LOGIN_FILE", str(folder / "login"))


def seen(settings: Settings) -> AirflowHealth:
    found = airflow_health(settings)
    assert found is not None
    return found


def test_the_health_needs_no_login(company: CompanyAirflow, settings: Settings) -> None:
    found = seen(settings)
    assert (found.address, found.problem, found.dead, found.paused) == (company.url, None, (), None)
    assert "LAKEBOUND_AIRFLOW_LOGIN_FILE" in (found.paused_problem or "")
    company.health["triggerer"] = {"status": "unhealthy"}
    assert seen(settings).dead == ("triggerer",)


@pytest.mark.parametrize("text", [f"ada:{PASSWORD}\n", f"{TOKEN}\n"])
def test_a_login_or_a_token_shows_which_dags_are_paused(
    company: CompanyAirflow, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    log_in(monkeypatch, tmp_path, text)
    assert (seen(settings).paused, seen(settings).paused_problem) == (company.paused, None)
    assert look_at_airflow(settings, "orders", unpause=True).was_unpaused
    assert not company.paused["ingest__orders"]


def test_a_dag_that_airflow_does_not_know_yet_is_waited_for(
    company: CompanyAirflow, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(monkeypatch, tmp_path, TOKEN)
    lines: list[str] = []

    def read_the_new_file(line: str) -> None:
        lines.append(line)
        company.paused["ingest__payments"] = True

    found = look_at_airflow(settings, "payments", unpause=True)
    assert (found.is_unknown, found.problem, found.is_paused) == (True, None, None)
    assert "Airflow does not know the DAG ingest__payments yet" in who_starts("payments", None, found)
    found = look_at_airflow(settings, "payments", unpause=True, wait_seconds=30, tell=read_the_new_file)
    assert (found.is_unknown, found.was_unpaused) == (False, True)
    assert lines == ["Airflow does not know the DAG ingest__payments yet; waiting up to 30 s for it"]


def test_a_login_that_every_user_of_the_machine_reads_is_not_sent(
    company: CompanyAirflow, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(monkeypatch, tmp_path, TOKEN)
    (tmp_path / "login").chmod(0o644)
    found = seen(settings)
    assert found.paused is None and "is open to every user of the machine" in (found.paused_problem or "")
    (tmp_path / "link").symlink_to("login")
    monkeypatch.setenv("LAKEBOUND_AIRFLOW_LOGIN_FILE", str(tmp_path / "link"))
    assert "is open to every user of the machine" in (seen(settings).paused_problem or ""), "the file counts, not the link"
    (tmp_path / "login").chmod(0o640)
    assert seen(settings).paused == company.paused


def test_a_login_that_a_group_can_replace_is_not_sent(
    company: CompanyAirflow, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(monkeypatch, tmp_path, TOKEN)
    (tmp_path / "login").chmod(0o660)
    found = seen(settings)
    assert found.paused is None and "can be written by its group" in (found.paused_problem or "")


@pytest.mark.parametrize("text", ["ada:wrong", "another-token", "", ":no-user"])
def test_a_login_that_does_not_work_hides_no_health_and_is_not_repeated(
    company: CompanyAirflow, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    log_in(monkeypatch, tmp_path, text)
    found = seen(settings)
    assert (found.problem, found.dead, found.paused) == (None, (), None)
    assert found.paused_problem and not any(part and part in found.paused_problem for part in text.split(":"))


def test_an_answer_that_is_not_airflows_is_a_problem(company: CompanyAirflow, settings: Settings) -> None:
    company.raw = b"<html>please log in</html>"
    assert "does not answer as an Airflow does" in (seen(settings).problem or "")


def test_an_airflow_that_is_away_is_a_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKEBOUND_AIRFLOW_URL", "http://127.0.0.1:1")
    assert "http://127.0.0.1:1 does not answer" in (seen(settings).problem or "")


def test_without_an_address_and_an_embedded_airflow_there_is_none(settings: Settings) -> None:
    assert airflow_health(settings) is None


@pytest.mark.parametrize("url", ["airflow.example.com", "ftp://airflow", "https://ada:secret@airflow", "http://[::1"])
def test_an_address_that_is_none_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingError) as refused:
        load_airflow_access({"LAKEBOUND_AIRFLOW_URL": url})
    assert "LAKEBOUND_AIRFLOW_URL" in str(refused.value) and "secret" not in str(refused.value)


def test_status_shows_the_own_airflow_and_the_own_brokers(
    company: CompanyAirflow, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(monkeypatch, tmp_path, TOKEN)
    company.health["scheduler"] = {"status": "unhealthy", "latest_scheduler_heartbeat": "2026-11-20T14:00:00+00:00"}
    begin = time.monotonic()
    shown = lakebound("status").stdout
    assert time.monotonic() - begin < 10 * STRETCH
    assert company.url in shown and "down" not in shown, "no service of `lakebound up` is expected"
    assert "airflow: gives no sign of life: scheduler (last sign of life" in shown
    assert "kafka 127.0.0.1:1 (of orders): no answer" in shown
    body = answer("status")
    assert body["airflow"]["paused"]["ingest__orders"] is True
    assert [(found["bootstrap_servers"], found["brokers"]) for found in body["brokers"]] == [("127.0.0.1:1", None)]


def test_components_have_the_age_of_their_last_sign_of_life() -> None:
    now = datetime(2026, 11, 20, 14, 1, tzinfo=UTC).timestamp()
    body: dict[str, dict[str, str | None]] = {
        "metadatabase": {"status": "healthy"},
        "scheduler": {"status": "unhealthy", "latest_scheduler_heartbeat": "2026-11-20T14:00:00+00:00"},
        "triggerer": {"status": None, "latest_triggerer_heartbeat": None},
    }
    assert components_of(body, now) == {"metadatabase": ComponentHealth(True), "scheduler": ComponentHealth(False, 60.0)}
