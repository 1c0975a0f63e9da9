"""A pipeline whose application is a stand-in, for tests of what starts, watches and stops applications."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lakebound.control.applications import stop_streams
from lakebound.control.desired import Desired
from lakebound.control.submission import Owner
from lakebound.landing import local_launch
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec

FAKE_APPS = Path(__file__).parents[2] / "airflow" / "apps"
OWNER = Owner(dag_id="ingest__orders", run_id="run-1", task_id="stream")
ORDERS = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:1"},
    "value": {"format": "bytes"},
    "freshness": "500ms",
    "tables": [{"format": "delta", "name": "lake.orders"}],
}


@pytest.fixture(name="settings")
def settings_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Places of a test's own, with the pipeline ``orders``; its applications are Python processes, ended with the test."""
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEBOUND_APPS", str(FAKE_APPS))
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(tmp_path / "pipelines"))
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "orders.yaml").write_text(yaml.safe_dump(ORDERS))

    def command(run_spec: RunSpec, _: Settings, *, ui_port: int) -> list[str]:
        return [sys.executable, str(FAKE_APPS / "ingest_stream.py"), "--run-spec", run_spec.model_dump_json(by_alias=True)]

    monkeypatch.setattr(local_launch, "spark_submit_command", command)
    found = load_settings()
    yield found
    stop_streams(found, deadline_seconds=5)


def orders(settings: Settings, app_id: str = "orders-g0-1", desired: Desired | None = None) -> RunSpec:
    """Return the orders of an application of the pipeline."""
    return make_run_spec(PipelineSpec.model_validate(ORDERS), settings, desired or Desired(), app_id)
