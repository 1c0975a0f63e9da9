"""What a real Airflow of the tests finds: pipelines, DAG files and variables."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.airflow.real_stack import USERS
from tests.support.airflow.receivers import WebhookEndpoint
from tests.support.streams.hours_writer import WANTED
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.stand_ins import ORDERS

REPOSITORY = Path(__file__).parents[3]
PASSWORD = "canary-4b1d0c7e"
WEBHOOK_SECRET = "canary-99e2f6aa"
METRICS_TOKEN = "metrics-token"
"""Name of the file in LAKEBOUND_HOME; a test writes it."""
SEARCHES = "searches"
"""Has a transform, and its DAG begins paused. Its test writes a broker into the YAML; then the real application lands."""
PIPELINES = ("orders", "stalls", "crashes", "moves", "survives", *([SEARCHES] if LONG_FORM else []))
STARTS = ("dags", "spark_apps", "lakebound_airflow.plugin", "lakebound.cli.process")
"""What its processes run; see tests/support/reached_tests.py."""
HASTY = "recover_hasty"
ON_COMMIT = """
from __future__ import annotations

from airflow.sdk import dag, task
from lakebound_airflow.assets import table_asset

@dag(schedule=[table_asset("orders", "delta:lake.orders", every_commits=100, every_seconds=15)], is_paused_upon_creation=False,
     max_active_runs=1)
def on_commit():
    @task
    def show(triggering_asset_events=None):
        return [event.extra for events in triggering_asset_events.values() for event in events]
    show()

on_commit()
"""
HOURS_TABLES = "hours-tables"
"""Folder in LAKEBOUND_HOME of the table on whose complete hours a DAG runs."""
HOURLY = """
from __future__ import annotations

from airflow.sdk import dag, task
from lakebound_airflow.complete_hours import complete_hours, take_hour

@dag(schedule=complete_hours("moves", "delta:lake.moves"), is_paused_upon_creation=False, max_active_runs=2)
def hourly():
    @task
    def report(hour, dag_run=None):
        import pyarrow.compute as pc
        from deltalake import DeltaTable
        from lakebound.spec.pipeline import TableSpec
        from lakebound.tables.places import local_places
        from pathlib import Path

        folder = Path("{tables}")
        table = local_places(folder, folder / "lake").delta_path(TableSpec(format="delta", name="lake.moves"))
        rows = {}
        for row in DeltaTable(str(table), version=int(hour["version"])).to_pyarrow_table(columns=["at", "_kafka"]).to_pylist():
            if hour["start"] <= row["at"].isoformat() < hour["end"]:
                rows.setdefault(str(row["_kafka"]["partition"]), []).append(row["_kafka"]["offset"])
        return {**hour, "rows": rows, "begins": dag_run.partition_date.isoformat()}
    report(take_hour("moves", "delta:lake.moves").output)

hourly()
"""
DEAF = """
from __future__ import annotations

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import dag

@dag(schedule=None, is_paused_upon_creation=False)
def deaf():
    BashOperator(task_id="sleep", bash_command="trap '' TERM; sleep 600; true")

deaf()
"""


def write_pipelines(folder: Path) -> None:
    """Write the pipelines' YAML, and one that is broken."""
    folder.mkdir()
    for name in PIPELINES:
        spec = {
            **ORDERS,
            "pipeline": name,
            "tables": [{"format": "delta", "name": f"lake.{name}"}],
            "limits": {"max_failed_starts": 2, "failed_start_pause_seconds": 3},
        }
        connection: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1"}
        if name == "orders":
            connection["sasl"] = {"username": "app", "password": {"env": "LAKEBOUND_SECRET_ORDERS"}}
        if name == "moves":
            spec["complete_hours"] = WANTED
        if name == SEARCHES:
            spec["value"] = {"format": "json", "schema": "id BIGINT NOT NULL, text STRING"}
            spec["transform"] = "transforms.slow_numbers.slow_numbers"
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({**spec, "connection": connection}))
    (folder / "broken.yaml").write_text("pipeline: broken\ntopics: [a]\nfreshnes: 5s\n")


def write_dags(folder: Path) -> None:
    """Copy the shipped DAG files, and add some.

    One runs when data has landed, one when an hour is complete; the task of one hears no SIGTERM; one is ``recover``, but waits
    3 s for its approval. The health DAG begins paused: its five tasks would take the time of what the tests watch, and what it
    finds would explain away the alerts that they wait for. One test has it look.
    """
    shutil.copytree(REPOSITORY / "dags", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "on_commit.py").write_text(ON_COMMIT)
    (folder / "deaf.py").write_text(DEAF)
    (folder / "hourly.py").write_text(HOURLY.replace("{tables}", str(folder.parent / HOURS_TABLES)))
    health = folder / "checkpoint_health.py"
    write_changed(health, health, {"is_paused_upon_creation=False": "is_paused_upon_creation=True"})
    hasty = {'dag_id="recover"': f'dag_id="{HASTY}"', "timedelta(hours=12)": "timedelta(seconds=3)"}
    write_changed(folder / "recover.py", folder / f"{HASTY}.py", hasty)


def write_changed(source: Path, target: Path, changes: Mapping[str, str]) -> None:
    """Write a DAG file with other words in it."""
    text = source.read_text()
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    target.write_text(text)


def stack_environment(sink: WebhookEndpoint) -> Mapping[str, str]:
    """Return what Airflow's components see besides the settings."""
    webhook = {"conn_type": "http", "host": f"http://127.0.0.1:{sink.port}/{WEBHOOK_SECRET}"}
    environment = {
        "AIRFLOW_CONN_LAKEBOUND_WEBHOOK": json.dumps(webhook),
        "LAKEBOUND_SECRET_ORDERS": PASSWORD,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
        "LAKEBOUND_SELF_APPROVAL": "refuse",
        # All files cost 5 to 8 CPU seconds. No test changes one, and again and again, as for a user who edits, they keep a core
        # busy. Never again would not do: a DAG's watchers begin when its file is read while it is not paused.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "120",
    }
    if "PYTHONPATH" in os.environ:
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return environment
