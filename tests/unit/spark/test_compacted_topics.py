"""A target topic that is compacted, and whose rows have no key: refused before anything is made, with what to do."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from lakebound.errors import LakeboundError, MissingTopicError, TableMismatchError
from lakebound.landing import topic_check
from lakebound.landing.kafka import WrittenSettings
from lakebound.landing.to_topics.messages import JSON_COLUMN
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.stream.targets import topics

OUTPUT = pa.schema([pa.field("id", pa.string()), pa.field("_kafka", KAFKA_TYPE), pa.field(JSON_COLUMN, pa.string())])
BODY = {
    "pipeline": "orders",
    "topics": ["in"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "value": {"format": "json", "schema": "id STRING"},
    "freshness": "1s",
}


class Facts:
    """Says that every topic is compacted, or fails."""

    error: LakeboundError | None = None

    def __init__(self, connection: Any, **more: Any) -> None:
        assert connection.bootstrap_servers == "kafka:9092"

    def written_settings(self, names: Iterable[str]) -> dict[str, WrittenSettings]:
        if self.error is not None:
            raise self.error
        return dict.fromkeys(names, WrittenSettings(2000, is_compacted=True))


class Ledger:
    """A target of which no ledger is there yet."""

    def __init__(self, *given: Any) -> None:
        """Connect to nothing."""

    def read_ledger(self) -> Any:
        return SimpleNamespace(entry=None)


def spec(*keys: str | None) -> PipelineSpec:
    to_topics = [{"topic": f"out{number}", **({} if key is None else {"key": key})} for number, key in enumerate(keys)]
    return PipelineSpec.model_validate({**BODY, "to_topics": to_topics})


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "KafkaFacts", Facts)
    monkeypatch.setattr(topic_check, "KafkaFacts", Facts)
    monkeypatch.setattr(topics, "TopicTarget", Ledger)


def orders(given: PipelineSpec) -> Any:
    return SimpleNamespace(spec=given, freshness=given.freshness)


def in_real_time(**said: str) -> PipelineSpec:
    body = {**BODY, "freshness": "real_time", "to_topics": [{"topic": "out0", "key": "id"}], "real_time": said}
    return PipelineSpec.model_validate(body)


def test_a_start_is_refused_unless_the_rows_have_a_key() -> None:
    run = orders(spec("id"))
    topics.check_target_topics(run, OUTPUT, {})
    run = orders(spec("id", None))
    with pytest.raises(TableMismatchError, match=r"topic:out1 does not fit the pipeline: topic out1 is compacted .* as 'key'"):
        topics.check_target_topics(run, OUTPUT, {})


def test_the_check_names_the_topic_and_its_place_in_the_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    [problem] = topic_check.look_at_target_topics(spec("id", None))
    assert problem.keys == ("to_topics", 1) and problem.what.startswith("topic:out1: topic out1 is compacted")
    assert topic_check.look_at_target_topics(spec("id")) == []
    monkeypatch.setattr(Facts, "error", MissingTopicError("out0", "kafka:9092"))
    assert topic_check.look_at_target_topics(spec(None)) == []


def test_a_start_in_real_time_is_refused_where_the_topic_of_bad_records_is_compacted() -> None:
    refused = r"topic:quarantine.orders does not fit .* is compacted .* 'quarantine_topic' in real_time"
    with pytest.raises(TableMismatchError, match=refused):
        topics.check_target_topics(orders(in_real_time()), OUTPUT, {})
    batches = orders(in_real_time())
    batches.freshness = "0ms"
    topics.check_target_topics(batches, OUTPUT, {})  # in batches, bad records go to a table


def test_the_check_names_the_compacted_topic_of_bad_records() -> None:
    [problem] = topic_check.look_at_target_topics(in_real_time(quarantine_topic="bad"))
    assert problem.keys == ("real_time", "quarantine_topic") and problem.what.startswith("topic:bad: topic bad is compacted")
    [problem] = topic_check.look_at_target_topics(in_real_time())
    assert problem.keys == ("freshness",) and "topic quarantine.orders is compacted" in problem.what


def test_a_topic_that_is_not_there_hides_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def written_settings(_: Facts, names: Iterable[str]) -> dict[str, WrittenSettings]:
        if "out0" in (asked := list(names)):
            raise MissingTopicError("out0", "kafka:9092")
        return dict.fromkeys(asked, WrittenSettings(2000, is_compacted=True))

    monkeypatch.setattr(Facts, "written_settings", written_settings)
    [problem] = topic_check.look_at_target_topics(spec(None, None))
    assert problem.keys == ("to_topics", 1)


def test_the_bounds_of_the_messages_are_those_of_the_topics() -> None:
    run: Any = SimpleNamespace(spec=spec("id"))
    [bound] = topics.message_bounds(run, Facts(run.spec.connection))  # type: ignore[arg-type]
    assert (bound.key, bound.largest_bytes, bound.is_compacted) == ("id", 2000, True)
