"""For tests of a pipeline: its records decoded and transformed as the stream does it, without Kafka and without tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakebound.landing.direct_read import RecordColumns
from lakebound.landing.sampling import TopicSample
from lakebound.landing.spark_command import METASPACE, QUICK_START
from lakebound.settings import load_settings
from lakebound.spec.load import load_file as load_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of
from lakebound_spark.batch.landable import make_check
from lakebound_spark.batch.transform import References, load_transform, planned_output
from lakebound_spark.check.trial import land_in_memory
from lakebound_spark.reference.book import open_book

RECORD_TIME_MS = 1_767_225_600_000
"""Kafka's time of every record: 2026-01-01."""

_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": f"{QUICK_START} {METASPACE}",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    "spark.ui.enabled": "false",
}
"""Of a Spark that starts fast, and has the time zone of the stream."""


@dataclass(frozen=True)
class Landed:
    """What became of records.

    Attributes:
        rows: Of the tables, with ``_kafka``; its ``offset`` is the record's number.
        bad: Why records would go to quarantine: ``reason: in words``.
    """

    rows: list[dict[str, Any]]
    bad: list[str]


def land(
    spec: PipelineSpec,
    records: Sequence[str | bytes | None],
    reference: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Landed:
    """Return what a pipeline makes of records.

    Args:
        spec: The pipeline, as ``load_file`` reads it.
        records: Their values.
        reference: Rows of its reference data, by name. What is not given is read from where the YAML says.

    Raises:
        TransformRefusedError: The pipeline could not start.
    """
    session = _session()
    values = [value.encode() if isinstance(value, str) else value for value in records]
    topic, count = spec.topics[0], len(values)
    sample = RecordColumns([topic] * count, [0] * count, list(range(count)), [RECORD_TIME_MS] * count, [None] * count, values)
    transform = load_transform(spec, _references(session, spec, reference or {}))
    output = planned_output(session, spec, transform)
    landable = make_check(output.schema, (), has_transform=spec.transform is not None)
    rows, bad = land_in_memory(session, spec, TopicSample(sample, {topic: "test"}), transform, landable)
    told = zip(bad["reason"].to_pylist(), bad["error"].to_pylist(), strict=True)
    return Landed(rows.to_pylist(), [f"{reason}: {error}" for reason, error in told])


def _references(session: SparkSession, spec: PipelineSpec, given: Mapping[str, Sequence[Mapping[str, Any]]]) -> References:
    stored = {name: one for name, one in spec.reference.items() if name not in given}
    rest = spec.model_copy(update={"reference": stored})
    book = open_book(session, rest, places_of(load_settings(), spec.warehouse).read_only()) if stored else None
    made = {name: F.broadcast(session.createDataFrame(pa.Table.from_pylist([*rows]))) for name, rows in given.items()}
    return lambda: {**made, **(book.frames() if book is not None else {})}


def _session() -> SparkSession:
    apps = str(load_settings().apps)
    if apps not in sys.path:
        sys.path.insert(0, apps)  # where the transform is
    builder = SparkSession.builder.master("local[1]").appName("lakebound-test")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session
