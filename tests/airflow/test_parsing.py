"""What Airflow makes of the DAG files: in a process of its own, in which connections and processes are refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.stand_ins import ORDERS
from tests.support.waiting import HANGS_SECONDS

pytestmark = pytest.mark.airflow

REPOSITORY = Path(__file__).parents[2]
EXPECTED = {"pipeline": "nightly", "expectations": [{"expect": "fresh", "max_seconds": 60}]}
PARSE = """
import json, socket, subprocess, sys
import airflow.sdk  # what it does at import is not the DAGs' doing
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization

asked = []
def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.exec", "socket.connect", "socket.getaddrinfo"):
        asked.append(f"{event} {arguments}")
        raise RuntimeError(f"refused while parsing: {event}")
sys.addaudithook(refuse)

def summary(dag):
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    return {
        "schedule": str(dag.schedule),
        "max_active_runs": again.max_active_runs,
        "limit": again.max_consecutive_failed_dag_runs,
        "tasks": sorted(again.task_ids),
        "doc": dag.doc_md,
        "params": list(dag.params),
        "access": again.access_control and sorted(again.access_control),
    }

bag = DagBag(sys.argv[1], bundle_name="dags")
heavy = [name for name in ("pyspark", "py4j", "deltalake", "pyiceberg", "great_expectations") if name in sys.modules]
print(json.dumps({
    "dags": {dag_id: summary(dag) for dag_id, dag in bag.dags.items()},
    "errors": bag.import_errors, "asked": asked, "heavy": heavy,
}))
"""


def parse(tmp_path: Path, files: dict[str, str]) -> dict[str, Any]:
    """Return DAGs, import errors, refused events and loaded heavy modules."""
    pipelines = tmp_path / "pipelines"
    pipelines.mkdir()
    for name, text in files.items():
        (pipelines / name).write_text(text)
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
        "LAKEBOUND_AIRFLOW_ROLES": "Sales Team",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{tmp_path}/airflow.db",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "LAKEBOUND_HOME": str(tmp_path / "home"),
        "LAKEBOUND_PIPELINES": str(pipelines),
    }
    command = [sys.executable, "-c", PARSE, str(REPOSITORY / "dags")]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)
    assert answer.returncode == 0, answer.stderr[-3000:]
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return found


def test_pipelines_become_dags_without_a_connection_a_process_or_a_heavy_import(tmp_path: Path) -> None:
    cron = {**ORDERS, "pipeline": "nightly", "freshness": "available_now", "schedule": "0 3 * * *"}
    cron["tables"] = [{"format": "iceberg", "name": "lake.nightly"}]
    cron["complete_hours"] = {"unit": "day"}
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "nightly.yaml").write_text(yaml.safe_dump(EXPECTED))
    orders = {**ORDERS, "owners": ["Sales Team", "misspelt"]}
    found = parse(tmp_path, {"orders.yaml": yaml.safe_dump(orders), "nightly.yaml": yaml.safe_dump(cron)})
    ((file, error),) = found["errors"].items()
    assert file.endswith("broken_pipelines.py"), "a wrong role reaches no DAG, so it keeps none from loading"
    assert "the role 'misspelt' is not in LAKEBOUND_AIRFLOW_ROLES" in error
    access = {dag_id: dag["access"] for dag_id, dag in found["dags"].items() if dag["access"] is not None}
    assert access == {f"{kind}__orders": ["Sales Team"] for kind in ("ingest", "control", "prove", "maintain")}
    assert found["asked"] == []
    assert found["heavy"] == []
    kinds = ("ingest", "control", "prove", "maintain")
    of_pipelines = {f"{kind}__{pipeline}" for kind in kinds for pipeline in ("orders", "nightly")}
    assert {dag_id for dag_id in found["dags"] if "__" in dag_id} == {*of_pipelines, "validate__nightly", "hours__nightly"}
    assert found["dags"]["checkpoint_health"]["tasks"] == ["examine"]
    assert "*/5" in found["dags"]["checkpoint_health"]["schedule"]
    assert (found["dags"]["alerts"]["tasks"], found["dags"]["alerts"]["max_active_runs"]) == (["round"], 1)
    ingest = found["dags"]["ingest__orders"]
    assert ingest["schedule"] == "@continuous"
    assert (ingest["max_active_runs"], ingest["limit"], ingest["tasks"]) == (1, 2, ["guard", "stream"])
    assert "delta:lake.orders" in ingest["doc"]
    assert found["dags"]["ingest__nightly"]["schedule"] == "0 3 * * *"
    assert "until_time" in found["dags"]["control__orders"]["params"]
    assert found["dags"]["prove__orders"]["params"] == ["deep"]
    maintain = found["dags"]["maintain__orders"]
    assert (maintain["tasks"], maintain["max_active_runs"]) == (["plan", "run"], 1)
    assert "AssetOrTimeSchedule" in maintain["schedule"]
    validate = found["dags"]["validate__nightly"]
    assert (validate["tasks"], validate["params"]) == (["validate"], ["table", "suite", "first", "last"])
    assert validate["max_active_runs"] == 1
    hours = found["dags"]["hours__nightly"]
    name = "iceberg_lake.nightly"
    assert (hours["tasks"], hours["max_active_runs"]) == ([f"{task}_{name}" for task in ("announce", "due", "record")], 1)
    assert found["dags"]["recover"]["tasks"] == ["doctor", "prove", "repair"]
    assert found["dags"]["recover"]["params"] == [
        *("pipeline", "action", "to", "table", "source", "range_from", "range_to", "deep"),
    ]


@only_in_long_form  # shortly: test_a_broken_yaml_is_an_import_error_and_the_others_load in test_real_airflow.py
def test_a_broken_yaml_shows_as_an_import_error_with_file_and_line_and_breaks_nothing_else(tmp_path: Path) -> None:
    broken = "pipeline: broken\ntopics: [a]\nfreshnes: 5s\n"
    found = parse(tmp_path, {"orders.yaml": yaml.safe_dump(ORDERS), "broken.yaml": broken})
    assert "ingest__orders" in found["dags"]
    (message,) = found["errors"].values()
    assert "broken.yaml:3" in message
    assert "freshnes" in message
