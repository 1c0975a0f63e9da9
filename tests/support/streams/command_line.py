"""The command line in tests: on places of the test's own, with one pipeline."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.testing
import yaml
from typer.testing import CliRunner, Result

from lakebound.cli import app
from lakebound.control.processes import last_lines
from lakebound.landing import brokers
from lakebound.settings import Settings, load_settings
from tests.support.streams.pipelines import Pipeline

ORDERS: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:1"},
    "value": {"format": "bytes"},
    "freshness": "500ms",
    "tables": [{"format": "delta", "name": "lake.orders"}, {"format": "iceberg", "name": "lake.orders"}],
}
# Typer makes the whole tree of commands from their type hints for each that is run, which takes 0.1 s: here it is made once.
typer.testing._get_command = cache(typer.testing._get_command)

STARTS = ("lakebound.cli.process", "spark_apps")
"""What its processes run; see tests/support/reached_tests.py."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Places of a test's own, with the pipeline ``orders``."""
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(tmp_path / "lake"))
    monkeypatch.setenv("LAKEBOUND_APPS", str(tmp_path / "apps"))
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.delenv("LAKEBOUND_KAFKA", raising=False)
    monkeypatch.delenv("LAKEBOUND_AIRFLOW_URL", raising=False)
    monkeypatch.setattr(brokers, "ASK_SECONDS", 0.2)  # of a broker that is not there
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "apps" / "transforms").mkdir(parents=True)
    (tmp_path / "pipelines" / "orders.yaml").write_text(yaml.safe_dump(ORDERS))
    return load_settings()


def lakebound(*arguments: str, code: int = 0) -> Result:
    """Run a command and check its exit code."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def answer(*arguments: str, code: int = 0) -> Any:
    """Run a command with ``--json`` and return what it says."""
    return json.loads(lakebound(*arguments, "--json", code=code).stdout)


def known_to_commands(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let ``lakebound`` find the pipeline ``events`` and its places; its YAML is the only one in this new folder."""
    folder.mkdir()
    (folder / "events.yaml").write_text(yaml.safe_dump(pipeline.spec.model_dump(mode="json", by_alias=True, exclude_none=True)))
    settings = pipeline.settings
    places = {"HOME": settings.home, "WAREHOUSE": settings.warehouse, "APPS": settings.apps, "PIPELINES": folder}
    for name, value in places.items():
        monkeypatch.setenv(f"LAKEBOUND_{name}", str(value))


@contextmanager
def environment_of(settings: Settings, pipelines: Path) -> Iterator[None]:
    """Have commands of this process, and of those that it starts, work on these places, and on the pipelines of a folder."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**settings.environment(), "LAKEBOUND_PIPELINES": str(pipelines)}.items():
            patch.setenv(name, value)
        yield


def killed(*arguments: str, faults: str, timeout_seconds: float) -> Any:
    """Run a command with ``--json`` as a process whose application the faults kill, and return what it says.

    Never in this process: LAKEBOUND_FAULTS would kill it.
    """
    command = [str(Path(sys.executable).with_name("lakebound")), *arguments, "--json"]
    environment = {**os.environ, "LAKEBOUND_FAULTS": faults}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_seconds, check=False)
    assert done.returncode == 1, f"exit code {done.returncode}: {done.stderr}\n{_log_named_in(done.stderr)}"
    return json.loads(done.stdout)


def _log_named_in(said: str) -> str:
    """Return the end of the application's log, which the command names where the application fails."""
    found = [Path(word.rstrip(";")) for word in said.split() if word.endswith(".log;")]
    return last_lines(found[-1], 60) if found else ""
