"""The doctor of one pipeline: facts first, then the rules. It never writes."""

from __future__ import annotations

from lakebound.doctor.diagnosis import Diagnosis
from lakebound.doctor.pipeline_facts import read_pipeline_facts
from lakebound.doctor.pipeline_rules import diagnose
from lakebound.settings import Settings
from lakebound.spec import PipelineSpec


def examine_pipeline(spec: PipelineSpec, settings: Settings) -> Diagnosis:
    """Return the diagnosis of one of Lakebound's own pipelines; raises nothing for what is wrong with it."""
    return diagnose(read_pipeline_facts(spec, settings))
