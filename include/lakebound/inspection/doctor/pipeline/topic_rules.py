"""Rules about the topics that a pipeline writes to: each looks at the facts and says what it found. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.inspection.doctor.diagnosis import RuleFinding
from lakebound.inspection.doctor.pipeline.facts import PipelineFacts
from lakebound.inspection.doctor.wording import needs_person, seconds_in_words
from lakebound.landing.to_topics.producer import TRANSACTION_SECONDS

HANGING_SECONDS = TRANSACTION_SECONDS + 60.0
"""Kafka looks for transactions whose time is over every ten seconds, and writes their markers then."""


def target_topic_refused(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A target topic is not the one that the ledger names, or has messages that no entry explains."""
    for target, refusal in facts.written.refusals.items():
        yield needs_person("target-topic-refused", refusal, "target-topic", target=target)


def hanging_transaction(facts: PipelineFacts) -> Iterator[RuleFinding]:
    """A transaction is open for longer than any may be: readers of committed records get nothing after its begin."""
    for one in facts.written.transactions:
        if one.begun_ms is None or facts.now - one.begun_ms / 1000 <= HANGING_SECONDS:
            continue
        sentence = (
            f"a transaction in topic {one.topic}, partition {one.partition}, has been open for "
            f"{seconds_in_words(facts.now - one.begun_ms / 1000)}: readers of committed records get nothing from offset "
            f"{one.stable} on, although Kafka has records up to {one.end}"
        )
        evidence = {"topic": one.topic, "partition": one.partition, "last_stable_offset": one.stable, "high_watermark": one.end}
        yield needs_person("hanging-transaction", sentence, "hanging-transaction", **evidence)


TOPIC_RULES = (target_topic_refused, hanging_transaction)
