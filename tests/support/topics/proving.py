"""Judges two topics of one pipeline from outside, and what the proof and the doctor say of them."""

from __future__ import annotations

import json

from lakebound.inspection.doctor.pipeline.collect import read_pipeline_facts
from lakebound.inspection.doctor.pipeline.rules import diagnose
from lakebound.inspection.proof.collect import prove
from tests.support.kafka.journal import Journal
from tests.support.streams.pipelines import Pipeline
from tests.support.topics.judging import assert_topic_exactly_once
from tests.support.topics.reading import send_again


def assert_topics_and_their_proof(pipeline: Pipeline, journal: Journal, keyed: str, plain: str) -> None:
    """Check that each topic has each row once, that the proof says so, and that it finds a copy that somebody sends then.

    Args:
        pipeline: It has ended.
        journal: What was sent to its source.
        keyed: Its topic whose key is the column ``id``.
        plain: Its topic without a key.
    """
    servers = pipeline.settings.kafka
    messages = {name: assert_topic_exactly_once(servers, name, journal) for name in (keyed, plain)}
    assert all(message.key == str(json.loads(message.value)["id"]).encode() for message in messages[keyed])
    assert {message.key for message in messages[plain]} == {None}
    proofs = {found.table: found for found in prove(pipeline.spec, pipeline.places).tables}
    for name, found in messages.items():
        proof = proofs[f"topic:{name}"]
        assert (proof.rows, proof.missing.count, proof.duplicated.count) == (len(found), 0, 0)
    assert diagnose(read_pipeline_facts(pipeline.spec, pipeline.settings)).verdict != "needs_person"
    send_again(servers, keyed, messages[keyed][0])
    proofs = {found.table: found for found in prove(pipeline.spec, pipeline.places, deep=True).tables}
    assert proofs[f"topic:{keyed}"].duplicated.count == 1
