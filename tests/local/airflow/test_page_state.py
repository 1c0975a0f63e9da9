"""The page's app over the state files of a hundred pipelines: its rights, its headers, its speed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.support.airflow.page_app import ROLE, app_of_the_page
from tests.support.airflow.shown_history import copy_rollups, write_history
from tests.support.airflow.shown_pipelines import MARKUP, shown_settings, write_crash_loop, write_many
from tests.support.waiting import HANGS_SECONDS

from lakebound.control.folder import ControlFolder
from lakebound.control.status import pipeline_statuses
from lakebound.settings import Settings
from lakebound_airflow.page import declared

COUNT = 100
HEAVY = ("deltalake", "pyiceberg", "pyspark", "pyarrow", "confluent_kafka", "great_expectations")
LOADED = """
import sys
import lakebound_airflow.plugin
assert "fastapi" not in sys.modules, "whoever runs no API server loads no page"
import lakebound_airflow.page.app
lakebound_airflow.page.app.make_app()
from lakebound_airflow.page.declared import DeclaredPipelines
from lakebound_airflow.page.state import read_states
from lakebound.settings import load_settings
settings = load_settings()
loaded = DeclaredPipelines().read(settings)
assert loaded.specs and read_states(loaded.specs, settings, loaded, {}, 0.0)[0]
print([name for name in sys.argv[1:] if name in sys.modules])
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The state of many pipelines."""
    found = shown_settings(tmp_path_factory.mktemp("shown"))
    controls = [ControlFolder(found.home, name) for name in write_many(found, COUNT)]
    write_history(controls[0], time.time())
    copy_rollups(controls[0], controls[1:])
    write_crash_loop(found, "loops")
    (found.pipelines / "broken.yaml").write_text("pipeline: broken\nfreshnes: 5s\n")
    return found


@pytest.fixture
def app(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[FastAPI]:
    """The app over that state."""
    for name, value in settings.environment().items():
        monkeypatch.setenv(name, value)
    with app_of_the_page(monkeypatch) as found:
        yield found


def test_nobody_sees_a_pipeline_whose_dag_they_may_not_read(app: FastAPI) -> None:
    with TestClient(app, headers={ROLE: "reader-of-one"}) as client:
        found = client.get("/api/overview").json()
        assert [row["pipeline"] for row in found["pipelines"]] == ["pipeline_001"]
        assert found["problems"] == []
        assert client.get("/api/freshness").json().keys() == {"pipeline_001"}
        assert client.get("/api/pipelines/pipeline_001").json()["actions"] == []
        for address in (
            "/api/pipelines/pipeline_002",
            "/api/pipelines/pipeline_002/charts",
            "/api/pipelines/pipeline_002/ledger",
            "/api/pipelines/pipeline_002/quality",
            "/api/pipelines/pipeline_002/samples",
            "/pipelines/pipeline_002",
            "/api/pipelines/pipeline_002?dag_id=ingest__pipeline_001",
        ):
            assert client.get(address).status_code == 403, address


def test_what_is_not_there_is_not_found(app: FastAPI) -> None:
    with TestClient(app, headers={ROLE: "editor"}) as client:
        for address in (
            "/api/pipelines/none",
            "/api/pipelines/%2e%2e",
            "/api/pipelines/none/charts",
            "/api/pipelines/none/ledger",
            "/api/pipelines/none/quality",
            "/api/pipelines/%2e%2e/charts",
            "/static/app.py",
            "/static/%2e%2e%2fapp.py",
            "/runbooks/none",
            "/docs",
        ):
            assert client.get(address).status_code == 404, address


def test_a_hundred_pipelines_come_within_a_second_with_the_values_of_status(app: FastAPI, settings: Settings) -> None:
    with TestClient(app, headers={ROLE: "editor"}) as client:
        client.get("/api/overview")  # reads the YAML
        began = time.process_time()  # other tests disturb it less than the clock
        found = client.get("/api/overview").json()
        assert time.process_time() - began < 1.0
        lines = client.get("/api/freshness").json()
        assert len(lines) == COUNT and all(line["path"].count("L") > 50 for line in lines.values())
    rows = {row["pipeline"]: row for row in found["pipelines"]}
    said = {status.pipeline: status for status in pipeline_statuses(settings)}
    assert len(rows) == COUNT + 2 and rows.keys() == said.keys()
    for name, status in said.items():
        for field in ("desired", "alive", "situation", "lag_records", "freshness_seconds", "outdated"):
            assert rows[name][field] == getattr(status, field), (name, field)
    assert {"pipeline_013", "loops"} == {name for name, row in rows.items() if row["need"] == "now"}
    assert [row["need"] for row in found["pipelines"][:3]] == ["now", "now", "today"]
    assert any("broken.yaml" in line for line in found["problems"])


def test_markup_in_what_others_wrote_arrives_as_it_was_written(app: FastAPI) -> None:
    with TestClient(app, headers={ROLE: "editor"}) as client:
        answer = client.get("/api/pipelines/pipeline_003")
        assert answer.headers["content-type"] == "application/json"
        view = answer.json()
    assert MARKUP in view["alerts"][0]["what"] and MARKUP in view["findings"][0]["what"]
    assert len(view["incidents"]) == 10
    assert {action["name"] for action in view["actions"]} == {"start", "stop", "restart", "hold", "prove", "recover"}


def test_no_file_of_the_page_holds_a_script_or_a_style_or_names_another_server() -> None:
    static = Path(declared.__file__).parent / "static"
    for file in static.iterdir():
        text = file.read_text()
        assert "http://" not in text and "https://" not in text, file
        assert not any(word in text for word in ("innerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=")), file
        if file.suffix == ".html":
            assert text.count("<script") == 1 and "></script>" in text and " onclick" not in text
            assert 'src="/' not in text and 'href="/' not in text


def test_yaml_is_read_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = shown_settings(tmp_path)
    write_many(settings, 2)
    readings = []
    load = declared.load_pipelines
    monkeypatch.setattr(declared, "load_pipelines", lambda where: readings.append(where) or load(where))
    found = declared.DeclaredPipelines()
    assert found.read(settings).specs.keys() == found.read(settings).specs.keys() == {"pipeline_000", "pipeline_001"}
    assert len(readings) == 1
    (settings.pipelines / "pipeline_001.yaml").unlink()
    assert found.read(settings).specs.keys() == {"pipeline_000"}
    assert len(readings) == 2


def test_the_page_loads_nothing_that_reads_tables(tmp_path: Path) -> None:
    few = shown_settings(tmp_path)
    write_many(few, 4)
    environment = {**os.environ, **few.environment(), "AIRFLOW_HOME": str(tmp_path / "airflow")}
    ran = subprocess.run(
        [sys.executable, "-c", LOADED, *HEAVY], env=environment, capture_output=True, text=True, timeout=HANGS_SECONDS
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1].replace("'", '"')) == []
