"""How many messages people get when the broker is away: a real Airflow, a real stream, a real HTTP endpoint.

Starts the embedded services with one pipeline, lets it land, kills the broker, starts it again after a time, and waits for the
message that it is over. Writes ``docs/benchmarks/outage-alerts.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import threading
import time
from dataclasses import replace
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from lakebound.control.folder import ControlFolder
from lakebound.control.ports import free_port
from lakebound.control.processes import wait_until
from lakebound.control.progress import read_progress
from lakebound.local import stack
from lakebound.local.produce import Feed, produce
from lakebound.settings import Settings, load_settings

PIPELINE = "sensor_readings"
STARTED_SECONDS, LANDED_SECONDS, SETTLED_SECONDS, RESOLVED_SECONDS = 300.0, 600.0, 180.0, 1800.0
REPOSITORY = Path(__file__).parents[1]


class Endpoint:
    """What people would read: every message, and when it came."""

    def __init__(self) -> None:
        self.messages: list[tuple[float, dict[str, Any]]] = []
        messages = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                messages.append((time.time(), body))
                print(f"message: {body['kind']} {body['severity']} {body['reason'][:100]}", flush=True)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def connection(self) -> str:
        """The Airflow connection that leads here."""
        return json.dumps({"conn_type": "http", "host": f"http://127.0.0.1:{self._server.server_port}", "extra": {}})


def run(settings: Settings, endpoint: Endpoint, minutes: float) -> tuple[float, float]:
    """Run it all, and return when the broker went and when it came back."""
    environment = {"AIRFLOW_CONN_LAKEBOUND_WEBHOOK": endpoint.connection}
    services = stack.up(settings, kafka_port=free_port(), airflow_port=free_port(), environment=environment)
    settings = replace(settings, kafka=services.kafka)
    dag = f"ingest__{PIPELINE}"
    with stack.airflow_of(settings).client() as client:
        wait_until(lambda: {dag, "alerts", "checkpoint_health"} <= set(client.dags()), STARTED_SECONDS, "the DAGs")
        client.unpause(dag)
    _land_some(settings, seed=1)
    time.sleep(SETTLED_SECONDS)
    if endpoint.messages:
        raise SystemExit(f"{len(endpoint.messages)} messages came before the outage: {endpoint.messages}")
    print(f"the broker is killed, for {minutes:g} minutes", flush=True)
    broker = stack.broker_of(settings)
    went = time.time()
    broker.kill()
    time.sleep(minutes * 60)
    print("the broker starts again", flush=True)
    came = time.time()
    stack.up(settings, kafka_port=int(services.kafka.rpartition(":")[2]))
    _land_some(settings, seed=2)
    wait_until(lambda: _is_over(endpoint), RESOLVED_SECONDS, "the message that the outage is over")
    time.sleep(SETTLED_SECONDS)
    return went, came


def _is_over(endpoint: Endpoint) -> bool:
    of_outage = [body["kind"] for _, body in endpoint.messages if body["runbook"] == "broker-unavailable"]
    return "resolved" in of_outage


def _land_some(settings: Settings, seed: int) -> None:
    """Send records, and return when a commit was made after that."""
    began = time.time()
    produce({"bootstrap.servers": settings.kafka}, [Feed(PIPELINE, 50.0)], 20.0, seed=seed)

    def landed() -> bool:
        progress = read_progress(ControlFolder(settings.home, PIPELINE))
        return progress is not None and (progress.last_commit_at or 0.0) > began

    wait_until(landed, LANDED_SECONDS, "a commit")


def page(messages: list[tuple[float, dict[str, Any]]], went: float, came: float, minutes: float) -> str:
    """Return the page of results."""
    lines = [
        "# Messages of an outage",
        "",
        f"`make bench-outage-alerts` on {date.today()}, {platform.machine()}, {os.cpu_count()} cores: a",
        f"real Airflow with its DAGs, one running pipeline, the broker killed with SIGKILL and started again after {minutes:g}",
        "minutes; what a real HTTP endpoint received.",
        "",
        "| when | kind | severity | what |",
        "|---|---|---|---|",
    ]
    for at, body in messages:
        when = f"{at - went:.0f} s after it went" if at < came else f"{at - came:.0f} s after it came back"
        lines.append(f"| {when} | {body['kind']} | {body['severity']} | {body['reason'].splitlines()[0][:160]} |")
    return "\n".join([*lines, "", f"{len(messages)} messages.", ""])


def main() -> None:
    """Run it, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    minutes = parser.parse_args().minutes
    endpoint = Endpoint()
    with tempfile.TemporaryDirectory(prefix="lakebound-outage-") as folder:
        pipelines = Path(folder) / "pipelines"
        pipelines.mkdir()
        shutil.copy(REPOSITORY / "include" / "pipelines" / f"{PIPELINE}.yaml", pipelines)
        settings = load_settings({**os.environ, "LAKEBOUND_HOME": f"{folder}/home", "LAKEBOUND_PIPELINES": str(pipelines)})
        try:
            went, came = run(settings, endpoint, minutes)
        finally:
            stack.down(settings)
    text = page(endpoint.messages, went, came, minutes)
    (REPOSITORY / "docs" / "benchmarks" / "outage-alerts.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
