"""Every rule of the doctor of Lakebound's own pipelines, and the diagnosis that they give together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.inspection.doctor.pipeline.application_rules import APPLICATION_RULES
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.kafka_rules import KAFKA_RULES
from lakebound.inspection.doctor.pipeline.numbers import numbers_of
from lakebound.inspection.doctor.pipeline.table_rules import TABLE_RULES
from lakebound.inspection.doctor.pipeline.target_rules import TARGET_RULES
from lakebound.inspection.doctor.pipeline.warning_rules import WARNING_RULES

PipelineRule = Callable[[PipelineFacts], Iterable[RuleFinding]]

RULES: tuple[PipelineRule, ...] = (
    *TABLE_RULES,
    *KAFKA_RULES,
    *TARGET_RULES,
    *APPLICATION_RULES,
    *WARNING_RULES,
)
"""In the order in which findings of one verdict are shown."""


def diagnose(facts: PipelineFacts, rules: Sequence[PipelineRule] = RULES) -> Diagnosis:
    """Return what the rules find, and the numbers.

    While Kafka does not answer, nobody knows what a start would lose: a repairable finding then becomes ``starting``.
    """
    findings = tuple(finding for rule in rules for finding in rule(facts))
    if facts.kafka.problem is not None:
        findings = tuple(f.model_copy(update={"verdict": "starting"}) if f.verdict == "repairable" else f for f in findings)
    return Diagnosis(subject=facts.spec.pipeline, findings=findings, numbers=numbers_of(facts))
