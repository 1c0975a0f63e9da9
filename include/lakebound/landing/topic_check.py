"""Whether a pipeline's topics are those that its tables were landed from; asked by ``lakebound check`` and by each start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from lakebound.control import situations
from lakebound.errors import (
    BrokerUnavailableError,
    ForbiddenSecretError,
    KafkaRefusalError,
    LakeboundError,
    MissingSecretError,
    MissingTopicError,
    TopicRecreatedError,
    TopicWithoutIdError,
)
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.to_topics.messages import compaction_problem, quarantine_compaction_problem
from lakebound.ledger.entry import check_topic_ids
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import PlacedProblem
from lakebound.spec.real_time import REAL_TIME
from lakebound.spec.state import compacted_source_problem
from lakebound.spec.yaml_source import Keys
from lakebound.tables.landed import landed_topics
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

LOOK_SECONDS = 3.0


def check_landed_topics(spec: PipelineSpec, places: Places, topic_ids: Mapping[str, str]) -> None:
    """Check that no table holds offsets of another topic with the same name; writes nothing.

    Args:
        spec: Pipeline whose tables are looked at.
        places: Where this machine keeps tables and state folders.
        topic_ids: Kafka's id of each topic today, by the topic's name.

    Raises:
        TopicRecreatedError: One does.
        LakeboundError: A ledger cannot be read.
    """
    for one in spec.tables:
        table = open_table(one, places)
        if table.exists():
            check_topic_ids(table.read_ledger().coverage, topic_ids)


def look_at_topics(spec: PipelineSpec, places: Places) -> tuple[list[str], list[str]]:
    """Return (problems, warnings): what a start would refuse, and what it would wait for. Waits for Kafka some seconds.

    Args:
        spec: The pipeline.
        places: Where its tables are.
    """
    try:
        kafka = KafkaFacts(spec.connection, timeout_seconds=LOOK_SECONDS)
    except (MissingSecretError, ForbiddenSecretError) as exc:
        return [], [f"the topics could not be checked: {exc}"]
    found: dict[str, str] = {}
    missing: list[str] = []
    for topic in (*spec.topics, *(one.topic for one in spec.to_topics)):
        try:
            found |= kafka.topic_ids([topic])
        except MissingTopicError:
            missing.append(topic)
        except TopicWithoutIdError as exc:
            return [str(exc)], []
        except (BrokerUnavailableError, KafkaRefusalError) as exc:
            return [], [f"the topics could not be checked: {exc}"]
    warnings = []
    if missing:
        known = landed_topics(spec, places)
        landed = [topic for topic in missing if topic in known]
        text = situations.topic_missing(missing, spec.connection.bootstrap_servers, spec.pipeline, landed)
        warnings = [f"{text} (a start waits for it)"]
    try:
        check_landed_topics(spec, places, found)
    except TopicRecreatedError as exc:
        return [str(exc)], warnings
    return [], warnings


def look_at_target_topics(spec: PipelineSpec) -> list[PlacedProblem]:
    """Return what a start would refuse of the settings of topics; nothing where Kafka does not tell.

    Args:
        spec: The pipeline.
    """
    asked = list(_if_compacted(spec))
    found: list[PlacedProblem] = []
    try:
        kafka = KafkaFacts(spec.connection, timeout_seconds=LOOK_SECONDS) if asked else None
        for topic, problem in asked:
            with suppress(MissingTopicError):  # ``look_at_topics`` and ``look_at_real_time`` tell of it, and of what follows
                if kafka is not None and kafka.written_settings([topic])[topic].is_compacted:
                    found.append(problem)
    except LakeboundError:
        return found
    return found


def _if_compacted(spec: PipelineSpec) -> Iterator[tuple[str, PlacedProblem]]:
    """Yield the topics that must keep every record, or take messages without a key, each with what is wrong if compacted."""
    for number, one in enumerate(spec.to_topics):
        problem = compaction_problem(one, is_compacted=True)  # with a key, a topic with any settings takes the rows
        if problem is not None:
            yield one.topic, PlacedProblem(f"{one.id}: {problem}", ("to_topics", number))
    if spec.state is not None:
        [topic] = spec.topics
        yield topic, PlacedProblem(compacted_source_problem(topic), ("topics",))
    if spec.freshness == REAL_TIME:
        problem = quarantine_compaction_problem(spec.quarantine_topic, is_compacted=True)
        keys: Keys = ("real_time", "quarantine_topic") if spec.real_time.quarantine_topic is not None else ("freshness",)
        yield spec.quarantine_topic, PlacedProblem(f"topic:{spec.quarantine_topic}: {problem}", keys)
