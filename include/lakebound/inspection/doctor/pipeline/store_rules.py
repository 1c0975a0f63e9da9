"""Rules about the stores that a pipeline writes to: each looks at the facts and says what it found. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.wording import needs_person, starting, warning


def target_store_refused(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A store refuses the login, cannot take the rows, or is not the one that its ledger names."""
    for target, refusal in facts.stores.refusals.items():
        yield needs_person("target-store-refused", refusal, "target-store", target=target)


def target_store_away(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A store does not answer: the stream waits for it, or starts when it does."""
    for target, reason in facts.stores.away.items():
        yield starting("target-store-away", reason, "target-store", target=target)


def target_store_setup(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A store is set up so that it may forget something."""
    for target, advice in facts.stores.advice.items():
        yield warning("target-store-setup", advice, "target-store", target=target)


STORE_RULES = (target_store_refused, target_store_away, target_store_setup)
