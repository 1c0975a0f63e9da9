"""``freshness: real_time``: what a person says of it, and which pipelines it can be of. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from lakebound.frozen import Frozen
from lakebound.spec.key import JsonKeySpec, SchemaKeySpec
from lakebound.spec.to_topics import LEDGER_PREFIX, is_topic_name
from lakebound.spec.value import JsonValueSpec, SchemaValueSpec
from lakebound.spec.yaml_source import Keys

if TYPE_CHECKING:
    from lakebound.spec.pipeline import PipelineSpec

REAL_TIME = "real_time"
"""The freshness of a pipeline whose rows go on one by one, by Spark's Real-Time Mode."""
_EPOCH = re.compile(r"([0-9]{1,9}) ?(s|m)")
_TABLES = re.compile(r"[0-9]{1,9} ?(ms|s|m)")
_SECONDS = {"s": 1, "m": 60}
_LEAST_SECONDS = 5
_MOST_SECONDS = 3600


class RealTimeSpec(Frozen):
    """How a pipeline runs with ``freshness: real_time``."""

    epoch: str = Field(
        default="30s",
        description="How often the ledger records what was sent, such as 5s, 30s or 5m. After a crash, the records of up to "
        "one epoch are read and sent again. Between two epochs the stream pauses for some tenths of a second.",
    )
    tables: str | None = Field(
        default=None,
        description="How often tables and stores get rows, such as 0ms, 1s or 1m, while topics get them in real time. "
        "Required if a pipeline with freshness: real_time has tables or to_stores. Default: none.",
    )
    quarantine_topic: str | None = Field(
        default=None,
        description="Kafka topic for bad records. They are sent unchanged, with the reason in a header. The topic must exist. "
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

    @field_validator("tables")
    @classmethod
    def _interval(cls, tables: str | None) -> str | None:
        if tables is not None and not _TABLES.fullmatch(tables):
            raise ValueError(f"{tables!r} is not an interval such as 0ms, 1s or 1m")
        return tables

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
        return ("freshness",), "real_time sends rows to Kafka topics, but to_topics is missing; for tables, use 0ms"
    if spec.takes_batches and spec.real_time.tables is None:
        what = spec.takes_batches[0]
        return ("freshness",), (
            f"real_time sends rows to Kafka topics, but there are also {what}: say how often these get rows, such as "
            f"real_time: {{tables: 1s}}; or use 0ms for all of them"
        )
    if isinstance(spec.value, SchemaValueSpec):
        return ("freshness",), (
            f"real_time cannot decode {spec.value.format}: Python cannot run there, and Spark's own decoder knows only one "
            f"version of a schema; use 0ms"
        )
    if isinstance(spec.value, JsonValueSpec) and spec.value.envelope is not None:
        return ("freshness",), (
            f"real_time cannot read values in the envelope of {spec.value.envelope}: Python cannot run there; use 0ms, or set "
            f"value.converter.schemas.enable=false in the connector"
        )
    if isinstance(spec.key, JsonKeySpec):
        return ("key",), (
            f"format: {spec.key.format} cannot be decoded with freshness: real_time, where Python cannot run; use key: "
            f"{{format: string}} and take its fields in the transform (from_json), or use 0ms"
        )
    if isinstance(spec.key, SchemaKeySpec):
        return ("key",), (
            f"format: {spec.key.format} cannot be decoded with freshness: real_time, where Python cannot run, and Spark's own "
            f"decoder knows only one version of a schema; use key: {{format: bytes}}, or use 0ms"
        )
    if spec.reference:
        return ("freshness",), (
            "real_time reads reference data only once, at the start, so 'reference' cannot be used; use 0ms, or join a table "
            "that the transform reads by itself"
        )
    if quarantine in (*spec.topics, *(one.topic for one in spec.to_topics)):
        return ("real_time",), f"quarantine_topic: {quarantine} is a topic that the pipeline reads, or sends rows to"
    return None


def has_both_ends(spec: PipelineSpec, freshness: str) -> bool:
    """Return whether topics get rows in real time, and tables or stores beside them in batches.

    Args:
        spec: The pipeline.
        freshness: The one with which it runs.
    """
    return freshness == REAL_TIME and bool(spec.takes_batches)


def real_time_end(spec: PipelineSpec) -> PipelineSpec:
    """Return the pipeline as the query in real time sees it: with its topics alone."""
    return spec.model_copy(update=dict.fromkeys(spec.takes_batches, ()))


def batches_end(spec: PipelineSpec) -> PipelineSpec:
    """Return the pipeline as the query beside that in real time sees it: with its tables and stores, at their freshness."""
    return spec.model_copy(update={"to_topics": (), "freshness": spec.tables_freshness(REAL_TIME)})


def real_time_warnings(spec: PipelineSpec) -> list[str]:
    """Return what the YAML asks for that a pipeline in real time does not do, and could do without."""
    if spec.freshness != REAL_TIME or has_both_ends(spec, spec.freshness):
        return []
    warnings = []
    if spec.real_time.tables is not None:
        warnings.append(f"real_time.tables: {spec.real_time.tables} has no effect: the pipeline has no tables and no to_stores")
    if spec.quarantine_samples:
        warnings.append(
            f"quarantine_samples: {spec.quarantine_samples} has no effect with freshness: real_time: bad records are in the "
            f"topic {spec.quarantine_topic}"
        )
    return warnings
