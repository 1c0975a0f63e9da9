"""The conditions that every plan of recovery checks first, and the steps that plans share. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lakebound.errors import CatalogBehindError
from lakebound.ledger.entry import FormerCoverage, Offsets
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.facts import RecoveryFacts
from lakebound.operations.recovery.plan import PlanRefusedError, RepairAction, RepairStep

HELD_MEANWHILE = "the pipeline is held while this is applied: a running application ends after the batch in flight"
"""A note of every plan that commits."""


def refused(facts: RecoveryFacts, action: RepairAction, reason: str) -> PlanRefusedError:
    """Return the error that says why there is no plan.

    Args:
        facts: They name the pipeline.
        action: The repair that was asked for.
        reason: End of the sentence, for a person.
    """
    return PlanRefusedError(facts.pipeline, action, reason)


def topics_of(facts: RecoveryFacts, action: RepairAction) -> dict[str, TopicFacts]:
    """Return Kafka's facts of every topic, or refuse: a plan needs all facts.

    Raises:
        PlanRefusedError: Kafka does not answer, or has no such topic.
    """
    if facts.kafka.silence is not None:
        raise refused(facts, action, f"the plan needs the offsets that Kafka has: {facts.kafka.silence}")
    gone = sorted(topic for topic, known in facts.kafka.topics.items() if known is None)
    if gone:
        raise refused(facts, action, f"not on the broker: {', '.join(gone)}; create it, or correct 'topics' in the YAML")
    return {topic: known for topic, known in facts.kafka.topics.items() if known is not None}


def check_readable(facts: RecoveryFacts, action: RepairAction) -> None:
    """Refuse if the ledger of a table cannot be read: nobody knows then which offsets it lacks.

    Raises:
        PlanRefusedError: The ledger of at least one table cannot be used.
    """
    for table in facts.tables:
        if table.refusal is not None:
            first = "repoint" if table.runbook == CatalogBehindError.runbook else "rebase"
            raise refused(facts, action, f"a ledger cannot be used; repair it first (action {first}): {table.refusal}")


def want_running(what: str) -> RepairStep:
    """Return the step that writes the desired state running."""
    return RepairStep(what=what, detail={"want": "running"})


def afterwards(facts: RecoveryFacts) -> Sequence[RepairStep]:
    """Return the last step: after a repair a held pipeline runs again; one that was stopped on purpose stays stopped."""
    if facts.control.desired.state == "stopped":
        return [RepairStep(what="leave the pipeline stopped, as it was before", detail={"want": "stopped"})]
    return [want_running("set the desired state to running")]


def reset_step(table: str, what: str, coverage: Offsets, former: FormerCoverage, released: int = 0) -> RepairStep:
    """Return the step that commits a ``reset`` entry.

    Args:
        table: Id of the table.
        what: What the step does, for the person who approves the plan.
        coverage: Offsets that the entry says the table has.
        former: Coverage of earlier incarnations of recreated topics, by topic.
        released: Number of offsets released from quarantine so far.
    """
    earlier = {topic: [held.model_dump(mode="json") for held in incarnations] for topic, incarnations in former.items()}
    detail = {"commit": "reset", "coverage": dumped(coverage), "former": earlier}
    return RepairStep(what=what, table=table, detail=detail | ({"released": released} if released else {}))


def dumped(offsets: Offsets) -> dict[str, Any]:
    """Return offsets as JSON."""
    return {topic: held.model_dump(mode="json") for topic, held in sorted(offsets.items())}
