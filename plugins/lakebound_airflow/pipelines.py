"""The pipelines as Airflow sees them. Reading them takes files only: no connection, no JVM, no network."""

from __future__ import annotations

from lakebound.control import ControlFolder
from lakebound.load import load_pipeline, load_pipelines
from lakebound.settings import Settings, load_settings
from lakebound.spec import PipelineSpec


def valid_specs(settings: Settings | None = None) -> list[PipelineSpec]:
    """Return the pipelines whose YAML is right; a wrong file keeps none of the others from loading."""
    return list(load_pipelines(settings or load_settings()).specs.values())


def problems(settings: Settings | None = None) -> list[str]:
    """Return what is wrong with the YAML files, a line per mistake: file, line, field."""
    return list(load_pipelines(settings or load_settings()).problems)


def spec_of(pipeline: str, settings: Settings) -> PipelineSpec:
    """Return one pipeline as its file says now.

    Raises:
        InvalidSpecError: Its YAML is wrong.
        UnknownPipelineError: No file declares it.
    """
    return load_pipeline(pipeline, settings)


def control_of(pipeline: str, settings: Settings) -> ControlFolder:
    """Return the pipeline's folder of state."""
    return ControlFolder(settings.home, pipeline)
