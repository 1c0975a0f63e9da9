"""What Spark says of pipelines comes in their order, also where some are refused before Spark is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakebound.cli import plan_check
from lakebound.cli.plan_check import SparkPlan, check_plans
from lakebound.settings import load_settings
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


def test_a_pipeline_whose_schema_cannot_be_read_keeps_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(group: Sequence[Any], *rest: object) -> Iterator[SparkPlan]:
        yield from (SparkPlan(run.spec.pipeline) for run, _ in group)

    monkeypatch.setattr(plan_check, "_check_in_one_session", planned)
    settings = replace(load_settings(), pipelines=tmp_path / "pipelines")
    unknown = {"format": "avro", "registry": "nowhere"}
    missing = {"format": "avro", "schema_file": "missing.avsc"}
    specs = [spec("a", **unknown), spec("b"), spec("c", **missing), spec("d"), spec("e", **unknown)]
    found = [*check_plans(specs, settings)]
    assert [one.pipeline for one in found] == ["a", "b", "c", "d", "e"]
    assert [len(one.problems) for one in found] == [1, 0, 1, 0, 1]
    assert "missing.avsc" in str(found[2].problems[0])
