"""The doctor of one pipeline: facts first, then the rules. It never writes."""

from __future__ import annotations

from lakebound.inspection.doctor.diagnosis import Diagnosis
from lakebound.inspection.doctor.pipeline.collect import read_pipeline_facts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec


def examine_pipeline(spec: PipelineSpec, settings: Settings) -> Diagnosis:
    """Return the diagnosis of one of Lakebound's own pipelines; raises nothing for what is wrong with it."""
    return diagnose(read_pipeline_facts(spec, settings))
