"""The pipelines as Airflow sees them. Reading them takes files only: no connection, no JVM, no network."""

from __future__ import annotations

from lakebound.control.folder import ControlFolder
from lakebound.inspection.validation.expectation_files import InvalidExpectationsError, load_expectations
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.declared import owned_pipeline, owned_pipelines
from lakebound_airflow.access import access_problems


def valid_specs(settings: Settings | None = None) -> list[PipelineSpec]:
    """Return the pipelines whose YAML is right; a wrong file keeps none of the others from loading."""
    return list(owned_pipelines(settings or load_settings()).specs.values())


def problems(settings: Settings | None = None) -> list[str]:
    """Return what is wrong with the YAML files, a line per mistake: file, line, field."""
    chosen = settings or load_settings()
    loaded = owned_pipelines(chosen)
    found = list(loaded.problems)
    for spec in loaded.specs.values():
        try:
            load_expectations(spec, chosen)
        except InvalidExpectationsError as exc:
            found += exc.problems
        found += access_problems(spec)
    return found


def spec_of(pipeline: str, settings: Settings) -> PipelineSpec:
    """Return one pipeline as its file says now.

    Raises:
        InvalidSpecError: Its YAML is wrong.
        UnknownPipelineError: No file declares it.
    """
    return owned_pipeline(pipeline, settings)


def control_of(pipeline: str, settings: Settings) -> ControlFolder:
    """Return the pipeline's folder of state."""
    return ControlFolder(settings.home, pipeline)


def expectations_of(spec: PipelineSpec, settings: Settings | None = None) -> ExpectationFile | None:
    """Return what is expected of a pipeline's records; None where nothing is, or its file is wrong: ``problems`` says that."""
    try:
        return load_expectations(spec, settings or load_settings())
    except InvalidExpectationsError:
        return None
