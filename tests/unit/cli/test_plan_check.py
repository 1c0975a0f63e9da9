"""What Spark says of pipelines comes in their order, also where they need different secrets, and so different sessions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lakebound.cli import plan_check
from lakebound.cli.plan_check import SparkPlan, check_plans
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec


def spec(name: str, **value: Any) -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": name,
            "topics": [name],
            "connection": {"bootstrap_servers": "kafka:9092"},
            "value": value or {"format": "bytes"},
            "freshness": "1s",
            "tables": [{"format": "delta", "name": f"sales.{name}"}],
        }
    )


def test_pipelines_keep_their_places_and_no_session_has_the_secrets_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions: list[tuple[list[str], set[str]]] = []

    def planned(group: Sequence[Any], _: Settings, secrets: frozenset[str]) -> Iterator[SparkPlan]:
        sessions.append(([run.spec.pipeline for run, _ in group], set(secrets)))
        yield from (SparkPlan(run.spec.pipeline) for run, _ in group)

    monkeypatch.setattr(plan_check, "_check_in_one_session", planned)
    settings = replace(load_settings(), pipelines=tmp_path / "pipelines")
    company = {"url": "http://registry", "token": {"env": "LAKEBOUND_SECRET_COMPANY"}}
    (tmp_path / "registries.yaml").write_text(yaml.safe_dump({"registries": {"company": company}}))
    avro = {"format": "avro", "registry": "company"}
    found = [*check_plans([spec("a"), spec("b"), spec("c", **avro), spec("d", **avro), spec("e")], settings)]
    assert [one.pipeline for one in found] == ["a", "b", "c", "d", "e"]
    own = {"LAKEBOUND_SECRET_COMPANY"}
    assert [(names, own & secrets) for names, secrets in sessions] == [(["a", "b"], set()), (["c", "d"], own), (["e"], set())]
