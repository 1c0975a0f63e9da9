"""A table's high-water marks against what Kafka has. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from lakebound.inspection.proof.result import Ranges, TableProof, found
from lakebound.ledger.entry import Offsets
from lakebound.ledger.marks import passed_by_retention, unlanded
from lakebound.ledger.topics import TopicFacts


def judge_marks(proof: TableProof, coverage: Offsets, topics: Mapping[str, TopicFacts | None]) -> TableProof:
    """Return the proof with its lag, and with what Kafka contradicts.

    Args:
        proof: So far.
        coverage: Of the table.
        topics: Of the pipeline; None for one that is not on the broker.
    """
    behind = 0
    for topic, facts in sorted(topics.items()):
        if facts is None:
            proof = proof.adding(problems=[f"topic {topic} is not on the broker"])
            continue
        if topic in coverage and coverage[topic].topic_id != facts.topic_id:
            text = f"topic {topic} was recreated: landed from id {coverage[topic].topic_id}, the broker has {facts.topic_id}"
            proof = proof.adding(problems=[f"{text}; see the runbook topic-recreated"])
            continue
        marks = proof.high_water_marks.get(topic, {})
        proof = _beyond_end(proof, topic, facts, marks)
        if proof.role == "target":
            behind += unlanded({topic: marks}, {topic: facts})
            proof = _retention(proof, topic, facts, marks)
    gone = sorted(set(coverage) - set(topics))
    notes = [f"no longer topics of the pipeline, so not compared with Kafka: {', '.join(gone)}"] if gone else []
    return proof.adding(notes=notes, lag=behind)


def _retention(proof: TableProof, topic: str, facts: TopicFacts, marks: Mapping[int, int]) -> TableProof:
    gone = passed_by_retention({topic: marks}, {topic: facts})
    if not gone:
        return proof
    lost: Ranges = {topic: {one.partition: ((one.start, one.end),) for one in gone}}
    text = f"Kafka has deleted offsets that were never landed: {found(lost)}; see the runbook retention-passed"
    return proof.adding(problems=[text], missing=proof.missing.plus(found(lost)))


def _beyond_end(proof: TableProof, topic: str, facts: TopicFacts, marks: Mapping[int, int]) -> TableProof:
    problems = [
        f"{topic}/{partition} is landed up to {mark}, but Kafka ends at {facts.latest.get(partition, 0)}; "
        "see the runbook offsets-beyond-end"
        for partition, mark in sorted(marks.items())
        if mark > facts.latest.get(partition, 0)
    ]
    return proof.adding(problems=problems)
