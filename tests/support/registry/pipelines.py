"""Pipelines whose records have schemas in a registry."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import yaml

from tests.support.streams.pipelines import Pipeline


def registered(pipeline: Pipeline, url: str, folder: Path) -> Pipeline:
    """Return a pipeline whose installation has the registry ``shop`` in a folder of its own."""
    include = folder / "include"
    (include / "pipelines").mkdir(parents=True, exist_ok=True)
    (include / "registries.yaml").write_text(yaml.safe_dump({"registries": {"shop": {"url": url}}}))
    return replace(pipeline, settings=replace(pipeline.settings, pipelines=include / "pipelines"))
