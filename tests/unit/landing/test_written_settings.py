"""Settings of topics that rows go to: what the broker says, or Kafka's defaults where the user may not ask."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from lakebound.errors import MissingTopicError
from lakebound.landing import kafka
from lakebound.landing.kafka import KafkaFacts, WrittenSettings
from lakebound.spec.connection import ConnectionSpec

CONNECTION = ConnectionSpec(bootstrap_servers="kafka:9092")
ANSWERS = {
    "plain": {"max.message.bytes": "2000", "cleanup.policy": "delete"},
    "compacted": {"max.message.bytes": "3000", "cleanup.policy": "compact"},
    "both": {"max.message.bytes": "3000", "cleanup.policy": "compact,delete"},
    "forbidden": KafkaError.TOPIC_AUTHORIZATION_FAILED,
    "gone": KafkaError.UNKNOWN_TOPIC_OR_PART,
}


class Admin:
    """A client of a broker with a topic for each answer."""

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        return {resource: self._answer(ANSWERS[resource.name]) for resource in resources}

    @staticmethod
    def _answer(answer: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if isinstance(answer, int):
            future.set_exception(KafkaException(KafkaError(answer, "said")))
        else:
            future.set_result({name: SimpleNamespace(value=value) for name, value in answer.items()})
        return future


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> KafkaFacts:
    client = SimpleNamespace(admin=Admin(), troubles=SimpleNamespace(told=lambda admin: None))
    monkeypatch.setattr(kafka, "_make_client", lambda connection: client)
    return KafkaFacts(CONNECTION)


def test_settings_are_those_of_the_broker_or_else_kafkas_defaults(facts: KafkaFacts) -> None:
    assert facts.written_settings(iter(["plain", "compacted", "both", "forbidden"])) == {
        "plain": WrittenSettings(2000, is_compacted=False),
        "compacted": WrittenSettings(3000, is_compacted=True),
        "both": WrittenSettings(3000, is_compacted=True),
        "forbidden": WrittenSettings(1_048_588, is_compacted=False),
    }
    assert facts.written_settings([]) == {}


def test_a_topic_that_is_not_there_is_told(facts: KafkaFacts) -> None:
    with pytest.raises(MissingTopicError, match="gone"):
        facts.written_settings(["plain", "gone"])
