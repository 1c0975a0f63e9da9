"""Whether a pipeline's topics are those that its tables were landed from; asked by ``lakebound check`` and by each start."""

from __future__ import annotations

from collections.abc import Mapping

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
from lakebound.landing.to_topics.messages import compaction_problem
from lakebound.ledger.entry import check_topic_ids
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import PlacedProblem
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
    """Return what a start would refuse of the settings of target topics; nothing where Kafka does not tell.

    Args:
        spec: The pipeline.
    """
    # With a key, a topic with any settings takes the rows.
    keyless = [(number, one) for number, one in enumerate(spec.to_topics) if one.key is None]
    try:
        kafka = KafkaFacts(spec.connection, timeout_seconds=LOOK_SECONDS) if keyless else None
        settings = kafka.written_settings(one.topic for _, one in keyless) if kafka is not None else {}
    except LakeboundError:
        return []  # ``look_at_topics`` tells of it
    found = []
    for number, one in keyless:
        problem = compaction_problem(one, is_compacted=settings[one.topic].is_compacted)
        if problem is not None:
            found.append(PlacedProblem(f"{one.id}: {problem}", ("to_topics", number)))
    return found
