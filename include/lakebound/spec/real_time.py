"""``freshness: real_time``: what a person says of it, and which pipelines it can be of. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from lakebound.frozen import Frozen
from lakebound.spec.to_topics import LEDGER_PREFIX, is_topic_name
from lakebound.spec.yaml_source import Keys

if TYPE_CHECKING:
    from lakebound.spec.pipeline import PipelineSpec

REAL_TIME = "real_time"
"""The freshness of a pipeline whose rows go on one by one, by Spark's Real-Time Mode."""
_EPOCH = re.compile(r"(\d+) ?(s|m)")
_SECONDS = {"s": 1, "m": 60}
_LEAST_SECONDS = 5
_MOST_SECONDS = 3600


class RealTimeSpec(Frozen):
    """How a pipeline runs with ``freshness: real_time``."""

    epoch: str = Field(
        default="30s",
        description="How often the ledger notes what was sent, such as 5s, 30s or 5m. After a crash, up to one epoch is read "
        "and sent again. Between two epochs the stream pauses for some tenths of a second.",
    )
    quarantine_topic: str | None = Field(
        default=None,
        description="Kafka topic that gets bad records as they were read, with the reason in a header. It must exist. "
        "Default: quarantine.<pipeline>.",
    )

    @field_validator("epoch")
    @classmethod
    def _epoch(cls, epoch: str) -> str:
        match = _EPOCH.fullmatch(epoch)
        if match is None:
            raise ValueError(f"{epoch!r} is not a time such as 5s, 30s or 5m")
        if not _LEAST_SECONDS <= int(match[1]) * _SECONDS[match[2]] <= _MOST_SECONDS:
            raise ValueError(f"{epoch!r} must be from 5s to 60m: Spark takes no shorter epoch, and a crash replays a whole one")
        return epoch

    @field_validator("quarantine_topic")
    @classmethod
    def _named(cls, topic: str | None) -> str | None:
        if topic is not None and (not is_topic_name(topic) or topic.startswith(LEDGER_PREFIX)):
            raise ValueError(f"{topic!r} is not a Kafka topic name, or that of a ledger topic of Lakebound")
        return topic

    @property
    def epoch_seconds(self) -> int:
        """Length of an epoch."""
        match = _EPOCH.fullmatch(self.epoch)
        assert match is not None
        return int(match[1]) * _SECONDS[match[2]]


def real_time_problem(spec: PipelineSpec) -> tuple[Keys, str] | None:
    """Return why a pipeline cannot run in real time, and of which field that is; None where it can as far as its YAML says."""
    quarantine = spec.quarantine_topic
    if not spec.to_topics:
        return ("freshness",), "real_time sends rows to Kafka topics, and there are no to_topics; 0ms is the nearest for tables"
    if spec.tables:
        return ("freshness",), "real_time writes to Kafka topics only, and there are tables; use 0ms, or two pipelines"
    if spec.to_stores:
        return ("freshness",), "real_time writes to Kafka topics only, and there are to_stores; use 0ms, or two pipelines"
    if spec.reference:
        return ("freshness",), (
            "real_time reads reference data only once, at the start, so 'reference' cannot be used; use 0ms, or join a table "
            "that the transform reads by itself"
        )
    if quarantine in (*spec.topics, *(one.topic for one in spec.to_topics)):
        return ("real_time",), f"quarantine_topic: {quarantine} is a topic that the pipeline reads, or sends rows to"
    return None


def real_time_warnings(spec: PipelineSpec) -> list[str]:
    """Return what the YAML asks for that a pipeline in real time does not do, and could do without."""
    if spec.freshness != REAL_TIME or not spec.quarantine_samples:
        return []
    return [
        f"quarantine_samples: {spec.quarantine_samples} has no effect with freshness: real_time: bad records are in the topic "
        f"{spec.quarantine_topic}"
    ]
