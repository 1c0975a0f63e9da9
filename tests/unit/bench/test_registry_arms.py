"""An arm whose values have a schema is told where the registry is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import arms
import pytest
import running

from lakebound.settings import load_settings


@pytest.mark.parametrize("work", ["avro", "protobuf"])
def test_the_application_gets_the_registry(work: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def start(command: list[str], folder: Path, **how: Any) -> None:
        commands.append(command)

    monkeypatch.setattr(running, "start", start)
    base = load_settings({"LAKEBOUND_HOME": str(tmp_path)})
    setting = arms.setting_of(base, "127.0.0.1:9092", "events", "http://127.0.0.1:8081/apis")
    started = arms.start(f"lakebound:iceberg:0ms:{work}", setting)
    [command] = commands
    orders = json.loads(command[command.index("--run-spec") + 1])
    assert orders["spec"]["value"]["format"] == work
    assert orders["registries"]["bench"]["url"] == "http://127.0.0.1:8081/apis"
    assert list(started.places) == ["iceberg"]
