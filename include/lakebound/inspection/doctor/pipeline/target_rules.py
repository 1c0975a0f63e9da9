"""Rules about targets beside tables: each kind brings its own, and here they become rules of the doctor. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
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
