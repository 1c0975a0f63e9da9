"""A pipeline's function is called by one thread at a time, whichever lane calls it."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.transform import load_transform

ENOUGH_SECONDS = 0.3
"""For another thread to come in, if it may."""


def test_no_two_calls_run_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, seen, other_came_in = list[Any](), list[int](), threading.Event()

    def function(frame: Any) -> Any:
        inside.append(frame)
        seen.append(len(inside))
        if len(inside) > 1:
            other_came_in.set()
        other_came_in.wait(ENOUGH_SECONDS)
        inside.remove(frame)
        return frame

    monkeypatch.setitem(sys.modules, "transforms.noticing", SimpleNamespace(clean=function))
    spec = PipelineSpec.model_validate(
        {
            "pipeline": "events",
            "connection": {"bootstrap_servers": "broker:9092"},
            "topics": ["events"],
            "value": {"format": "json", "schema": "id BIGINT"},
            "freshness": "1s",
            "transform": "transforms.noticing.clean",
            "tables": [{"format": "delta", "name": "shop.events"}],
        }
    )
    transform: Any = load_transform(spec)
    with ThreadPoolExecutor(3) as pool:
        assert [*pool.map(transform, "abc")] == ["a", "b", "c"]
    assert seen == [1, 1, 1]
