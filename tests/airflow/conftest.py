"""A real Airflow with the shipped DAGs, whose applications are stand-ins started by the real spark-submit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lakebound.control import processes
from lakebound.control.applications import stop_streams
from lakebound.control.folder import ControlFolder, write_json
from lakebound.local.airflow import Airflow
from lakebound.settings import load_settings
from tests.support.airflow.page_server import CHROMIUM
from tests.support.airflow.real_stack import Stack, insist
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.airflow.stack_folder import (
    METRICS_TOKEN,
    PIPELINES,
    REPOSITORY,
    SEARCHES,
    stack_environment,
    write_dags,
    write_pipelines,
)
from tests.support.streams.stand_ins import FAKE_APPS
from tests.support.waiting import wait_until

PARSE_SECONDS = 150.0
"""All DAG files are parsed by then: one whose DAGs the locked database did not take has its turn again later."""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Airflow with all pipelines running, one for all test modules; everything is ended with the session."""
    home = tmp_path_factory.mktemp("real-airflow")
    write_pipelines(home / "pipelines")
    write_dags(home / "dags")
    settings = load_settings(
        {
            "LAKEBOUND_HOME": str(home),
            "LAKEBOUND_APPS": str(FAKE_APPS),
            "LAKEBOUND_PIPELINES": str(home / "pipelines"),
            "LAKEBOUND_JARS": str(load_settings().jars),
        }
    )
    write_json(ControlFolder(home, "crashes").folder / "behaviour.json", {"fail_after_seconds": 0.5, "rows": 0})
    sink = WebhookEndpoint()
    environment = {**stack_environment(sink), "LAKEBOUND_METRICS_TOKEN_FILE": str(home / METRICS_TOKEN)}
    airflow = Airflow(settings, environment=environment, dags=home / "dags", plugins=REPOSITORY / "plugins")
    try:
        airflow.start()
        with airflow.client() as client:
            found = Stack(airflow, settings, sink, client)
            wait_until(lambda: len(client.dags()) >= 3 * len(PIPELINES) + 2, PARSE_SECONDS, "the DAGs")
            wait_until(lambda: "checkpoint_health" in client.dags(), PARSE_SECONDS, "the health DAG")
            for pipeline in set(PIPELINES) - {SEARCHES}:
                insist(lambda dag_id=f"ingest__{pipeline}": client.unpause(dag_id))
            yield found
            for record in found.triggerers:
                processes.kill(record)
    finally:
        airflow.kill()
        stop_streams(settings, deadline_seconds=5)
        sink.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, without a window."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("this machine has no Chromium: on Debian and Ubuntu install the package chromium")
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()
