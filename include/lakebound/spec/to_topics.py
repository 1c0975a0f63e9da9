"""A Kafka topic as a target of a pipeline: what a person writes, and the names that follow from it."""

from __future__ import annotations

import re

from pydantic import Field, field_validator

from lakebound.frozen import Frozen

LEDGER_PREFIX = "_lakebound_ledger."
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class ToTopicSpec(Frozen):
    """One target topic."""

    topic: str = Field(
        description="Kafka topic that gets a message for each row, on the broker of 'connection'. It must exist, and be empty "
        "before the first start. Nobody else may write to it."
    )
    key: str | None = Field(
        default=None,
        description="Column of the row that becomes the key of its message: text, bytes or a whole number. Without it, "
        "messages have no key and go to any partition.",
    )

    @field_validator("topic")
    @classmethod
    def _named(cls, topic: str) -> str:
        if not is_topic_name(topic):
            raise ValueError(f"{topic!r} is not a Kafka topic name")
        if topic.startswith(LEDGER_PREFIX):
            raise ValueError(f"{topic!r} is the name of a ledger topic of Lakebound")
        return topic

    @property
    def id(self) -> str:
        """``topic:name``, the target's name in progress, reports and messages, and its key in the ledger topic."""
        return f"topic:{self.topic}"

    @property
    def format(self) -> str:
        """``topic``, where a table has its format."""
        return "topic"


def is_topic_name(name: str) -> bool:
    """Return whether Kafka takes a topic's name."""
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")


def is_topic(target: str) -> bool:
    """Return whether the id of a target is that of a topic (``ToTopicSpec.id``)."""
    return target.startswith("topic:")


def ledger_topic(pipeline: str) -> str:
    """Return the name of the topic that holds the ledger of a pipeline's target topics."""
    return f"{LEDGER_PREFIX}{pipeline}"


def transactional_id(pipeline: str) -> str:
    """Return by which Kafka knows the one producer of a pipeline's target topics, whichever application has it."""
    return f"lakebound.{pipeline}"
