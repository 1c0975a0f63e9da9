"""Every rule of the doctor of Lakebound's own pipelines, and the diagnosis that they give together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from lakebound.inspection.doctor.diagnosis import Diagnosis, RuleFinding
from lakebound.inspection.doctor.pipeline.application_rules import APPLICATION_RULES
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.pipeline.kafka_rules import KAFKA_RULES
from lakebound.inspection.doctor.pipeline.numbers import numbers_of
from lakebound.inspection.doctor.pipeline.table_rules import TABLE_RULES
from lakebound.inspection.doctor.pipeline.warning_rules import WARNING_RULES
from lakebound.landing.target_kind import TargetKind, TargetRule, target_kinds


def _of_kind(kind: TargetKind, judge: TargetRule) -> Callable[[PipelineFacts], Iterator[RuleFinding]]:
    def rule(facts: PipelineFacts) -> Iterator[RuleFinding]:
        seen = facts.targets_seen.get(kind.key)
        for one in judge(seen, facts.now) if seen is not None else ():
            yield RuleFinding(
                rule=one.rule, verdict=one.verdict, sentence=one.sentence, runbook=one.runbook, evidence=dict(one.evidence)
            )

    rule.__name__, rule.__doc__ = judge.__name__, judge.__doc__
    return rule


TARGET_RULES = tuple(_of_kind(kind, judge) for kind in target_kinds() for judge in kind.rules)


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
