"""A real Prometheus takes the metrics page, evaluates the alert rules, and answers every query of the dashboard."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tests.support.airflow.shown_pipelines import shown_settings, write_many
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.control.folder import ControlFolder
from lakebound.control.histogram import histogram_of
from lakebound.control.ports import free_port
from lakebound.control.rollup_book import RollupBook
from lakebound.control.rollups import TEN_SECONDS, Bucket, Figures, TableFigures
from lakebound.metrics.page import CONTENT_TYPE, metrics_page
from lakebound.settings import Settings

pytestmark = [pytest.mark.local, pytest.mark.timeout(120)]

GRAFANA = Path(__file__).parents[3] / "include" / "grafana"
RULES = GRAFANA / "alert-rules.yaml"
RATE_INTERVAL = "5s"
"""What Grafana puts in place of ``$__rate_interval`` is four scrapes long, too."""
FIRED = {
    "LakeboundApplicationDead": {"lakebound_wanted": "1x20", "lakebound_up": "0x20"},
    "LakeboundStall": {"lakebound_up": "1x20", "lakebound_lag_records": "7x20", "lakebound_records_read_total": "5x20"},
    "LakeboundLag": {"lakebound_up": "1x40", "lakebound_lag_records": "200000+1000x40"},
}
"""Alerts, and series by the minute that must make them fire: those that promtool's own notation says."""
SILENT = {
    "lakebound_wanted": "1x40",
    "lakebound_up": "1x40",
    "lakebound_lag_records": "7x40",
    "lakebound_records_read_total": "0+9x40",
}


def installed(command: str) -> str:
    """Return the path of a command of Debian's package ``prometheus``."""
    found = shutil.which(command)
    if found is None:
        pytest.skip(f"this machine has no {command}: on Debian and Ubuntu install the package prometheus")
    return found


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    found = shown_settings(tmp_path_factory.mktemp("shown"))
    for name in write_many(found, 4):
        land(ControlFolder(found.home, name))
    return found


def land(control: ControlFolder) -> None:
    """Count what an application does in a second."""
    at = TEN_SECONDS.start_of(time.time())
    figures = Figures(
        tables={"delta:lake.orders": TableFigures(2, 90, time.time())},
        read=100,
        quarantined=10,
        freshness=histogram_of(0.4, 100),
        batches={"direct": histogram_of(0.1, 2)},
        steps={"direct": {"commit": 0.1}},
        cpu_seconds=0.7,
    )
    RollupBook(control, at).write([Bucket(at, figures)], at + 10)


def test_promtool_finds_nothing_wrong_with_the_page(settings: Settings) -> None:
    ran = subprocess.run(
        [installed("promtool"), "check", "metrics"],
        input=metrics_page(settings),
        capture_output=True,
        timeout=HANGS_SECONDS,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_promtool_takes_the_rules_and_they_fire_when_they_should(tmp_path: Path) -> None:
    promtool = installed("promtool")
    cases = [{"name": alert, **_case(series, alert)} for alert, series in FIRED.items()]
    cases.append({"name": "nothing is wrong", **_case(SILENT, *FIRED, fires=False)})
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": cases}))
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(file)]):
        ran = subprocess.run([promtool, *command], capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr


def _case(series: dict[str, str], *alerts: str, fires: bool = True) -> dict[str, Any]:
    rules = {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
    query = f'count(ALERTS{{alertname=~"{"|".join(alerts)}", alertstate="firing"}}) or vector(0)'
    assert {*alerts} <= rules.keys()
    return {
        "interval": "1m",
        "input_series": [{"series": f'{name}{{pipeline="orders"}}', "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": "38m" if "40" in "".join(series.values()) else "19m", "exp_samples": [_sample(fires)]}
        ],
    }


def _sample(fires: bool) -> dict[str, Any]:
    return {"labels": "{}", "value": 1 if fires else 0}


@contextmanager
def served(settings: Settings) -> Iterator[int]:
    """Serve the metrics page on a port; between two scrapes each pipeline lands something."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            for number in range(4):
                land(ControlFolder(settings.home, f"pipeline_{number:03d}"))
            body = metrics_page(settings)
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join(10)


@pytest.fixture
def prometheus(settings: Settings, tmp_path: Path) -> Iterator[httpx.Client]:
    """A Prometheus that scrapes the page every second and has the rules."""
    command, port = installed("prometheus"), free_port()
    with served(settings) as target:
        body = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(RULES)],
            "scrape_configs": [{"job_name": "lakebound", "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(body))
        options = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen([command, *options, f"--web.listen-address=127.0.0.1:{port}"], stdout=log, stderr=log)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=HANGS_SECONDS) as requests:
                yield requests
        finally:
            process.terminate()
            process.wait(HANGS_SECONDS)


def test_a_prometheus_scrapes_the_page_evaluates_the_rules_and_answers_the_dashboard(prometheus: httpx.Client) -> None:
    wait_until(lambda: _points(prometheus) >= 6, 60, "six scrapes")
    scraped = _asked(prometheus, "scrape_samples_scraped")
    assert float(scraped[0]["value"][1]) > 100
    wait_until(lambda: {rule["health"] for rule in _rules(prometheus)} == {"ok"}, 30, "the rules")
    assert len(_rules(prometheus)) == 7
    asked = 0
    for title, query in _dashboard():
        found = _asked(prometheus, query.replace("$__rate_interval", RATE_INTERVAL).replace("$pipeline", ".*"))
        assert found and any(one["value"][1] != "NaN" for one in found), f"{title} is empty: {query}"
        asked += 1
    assert asked >= 16
    of_one = '{pipeline="pipeline_000"}'
    [cost] = _asked(prometheus, f"sum(lakebound_cpu_seconds_total{of_one}) / sum(lakebound_records_read_total{of_one})")
    assert float(cost["value"][1]) == pytest.approx(0.007)


def _points(prometheus: httpx.Client) -> int:
    try:
        found = _asked(prometheus, "count_over_time(lakebound_up[5m])")
    except httpx.HTTPError:
        return 0
    return max((int(float(one["value"][1])) for one in found), default=0)


def _asked(prometheus: httpx.Client, query: str) -> list[dict[str, Any]]:
    answer = prometheus.get("/api/v1/query", params={"query": query}).raise_for_status().json()
    assert answer["status"] == "success", (query, answer)
    found = answer["data"]["result"]
    assert isinstance(found, list)
    return found


def _rules(prometheus: httpx.Client) -> list[dict[str, Any]]:
    groups = prometheus.get("/api/v1/rules").json()["data"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _dashboard() -> Iterator[tuple[str, str]]:
    for panel in json.loads((GRAFANA / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            assert not re.search(r"\$(?!pipeline|__rate_interval)", target["expr"])
            yield panel["title"], target["expr"]
