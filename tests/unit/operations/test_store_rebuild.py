"""The plan by which a store is filled again: what Kafka no longer has, and when there is no plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.tables.rewinding import described

from lakebound.ledger.entry import TopicOffsets
from lakebound.ledger.lost import LostRange
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.facts import BrokerFacts
from lakebound.operations.recovery.plan import PlanRefusedError
from lakebound.operations.recovery.store_rebuild import StoreFacts, lost_ranges, plan_store_rebuild

SPEC = described(
    topics=["payments"],
    to_stores=[{"name": "cards", "key": "card", "redis": {"host": "cache"}}],
)
KAFKA = BrokerFacts({"payments": TopicFacts("first", {0: 40, 1: 0}, {0: 100, 1: 50})})


def coverage(topic_id: str = "first") -> dict[str, TopicOffsets]:
    return {"payments": TopicOffsets(topic_id=topic_id, partitions={0: ((10, 30), (35, 90)), 1: ((0, 50),)})}


def facts(**changes: Any) -> StoreFacts:
    return replace(StoreFacts(SPEC.to_stores[0], 7, coverage(), None, KAFKA), **changes)


def test_the_plan_says_what_kafka_no_longer_has() -> None:
    plan = plan_store_rebuild(SPEC, facts())

    assert [(lost.partition, lost.start, lost.end) for lost in plan.loses] == [(0, 10, 30), (0, 35, 40)]
    assert "offsets lost permanently: **25**" in plan.markdown()
    assert (plan.removes_rows, plan.replays_records) == ({"redis:cards": 7}, 110)
    assert plan.hash != plan_store_rebuild(SPEC, facts(coverage={})).hash


def test_of_a_topic_that_was_created_again_kafka_has_nothing() -> None:
    topics = {"payments": TopicFacts("second", {0: 0, 1: 0}, {0: 100, 1: 50})}
    assert lost_ranges(coverage(), topics) == [
        LostRange(topic="payments", partition=0, start=10, end=30),
        LostRange(topic="payments", partition=0, start=35, end=90),
        LostRange(topic="payments", partition=1, start=0, end=50),
    ]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"held": 0, "coverage": None}, "the next start fills it"),
        ({"kafka": BrokerFacts(silence="no answer")}, "no answer"),
        ({"kafka": BrokerFacts({"payments": None})}, "not on the broker: payments"),
    ],
)
def test_there_is_no_plan_without_something_to_do_and_without_kafka(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(PlanRefusedError, match=told):
        plan_store_rebuild(SPEC, facts(**changes))


def test_a_store_that_would_begin_at_the_end_is_not_emptied() -> None:
    with pytest.raises(PlanRefusedError, match="start_from is latest"):
        plan_store_rebuild(SPEC.model_copy(update={"start_from": "latest"}), facts())


def test_keys_without_a_ledger_may_be_somebody_elses() -> None:
    assert "belongs to nobody else" in plan_store_rebuild(SPEC, facts(coverage=None)).markdown()
    assert "is not known: torn" in plan_store_rebuild(SPEC, facts(coverage=None, refusal="torn")).markdown()
