"""For tests of a pipeline: its records decoded and transformed as the stream does it, without Kafka and without tables."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound.landing.direct_read import GivenHeaders, RecordColumns
from lakebound.landing.read_schemas import SchemaBook
from lakebound.landing.registry_subjects import RegistrySubjects
from lakebound.landing.sampling import TopicSample
from lakebound.landing.schema_files import read_schema_files
from lakebound.landing.spark_command import METASPACE, QUICK_START
from lakebound.settings import load_settings
from lakebound.spec.load import load_file as load_file
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.registries_file import find_registry
from lakebound.spec.state import check_stateless
from lakebound.tables.places import places_of
from lakebound_spark.batch.record_format import columns_of_ddl
from lakebound_spark.check.trial import land_in_memory
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.parts import plan_pipeline
from lakebound_spark.reference.book import ReferenceBook, open_book

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


@dataclass(frozen=True)
class Record:
    """A record with more than a value.

    Attributes:
        value: Its value.
        key: Its key.
        headers: Its headers, in their order.
    """

    value: str | bytes | None
    key: str | bytes | None = None
    headers: Sequence[tuple[str, str | bytes | None]] = ()


def land(
    spec: PipelineSpec,
    records: Sequence[str | bytes | Record | None],
    reference: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> Landed:
    """Return what a pipeline makes of records.

    Args:
        spec: The pipeline, as ``load_file`` reads it.
        records: Their values, or records with keys and headers.
        reference: Rows of its reference data, by name. What is not given is read from where the YAML says.

    Raises:
        TransformRefusedError: The pipeline could not start.
    """
    session = _session()
    topic = spec.topics[0]
    sample = _columns(topic, [one if isinstance(one, Record) else Record(one) for one in records])
    spec = _with_schemas(spec)
    check_stateless(spec, "trial")
    planned = plan_pipeline(session, spec, _references(session, spec, reference or {}))
    rows, bad = land_in_memory(Assembly(planned, {topic: "test"}), TopicSample(sample, {topic: "test"}))
    told = zip(bad["reason"].to_pylist(), bad["error"].to_pylist(), strict=True)
    return Landed(rows.to_pylist(), [f"{reason}: {error}" for reason, error in told])


def _with_schemas(spec: PipelineSpec) -> PipelineSpec:
    """Return the pipeline with its schemas: those of its registry are read from where registries.yaml says."""
    settings = load_settings()
    subjects = {
        part: RegistrySubjects(source.registry, find_registry(source.registry, settings), None)
        for part, source in spec.schema_sources.items()
        if source.registry is not None
    }
    return SchemaBook(spec, read_schema_files(spec, settings), subjects, columns_of=columns_of_ddl).spec


def _columns(topic: str, records: Sequence[Record]) -> RecordColumns:
    count = len(records)
    keys, values = [_bytes(one.key) for one in records], [_bytes(one.value) for one in records]
    sources = [GivenHeaders([(name, _bytes(value)) for name, value in one.headers]) for one in records]
    times = [RECORD_TIME_MS] * count
    return RecordColumns([topic] * count, [0] * count, list(range(count)), times, keys, values, [*sources])


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@dataclass(frozen=True)
class _References:
    """Reference data of a test, and what is read from where the YAML says."""

    given: Mapping[str, DataFrame]
    stored: ReferenceBook | None

    def frames(self) -> Mapping[str, DataFrame]:
        return {**self.given, **(self.stored.frames() if self.stored is not None else {})}

    def tokens(self) -> Mapping[str, str]:
        return {}


def _references(session: SparkSession, spec: PipelineSpec, given: Mapping[str, Sequence[Mapping[str, Any]]]) -> _References:
    stored = {name: one for name, one in spec.reference.items() if name not in given}
    rest = spec.model_copy(update={"reference": stored})
    book = open_book(session, rest, places_of(load_settings(), spec.warehouse).read_only()) if stored else None
    made = {name: F.broadcast(session.createDataFrame(pa.Table.from_pylist([*rows]))) for name, rows in given.items()}
    return _References(made, book)


def _session() -> SparkSession:
    apps = str(load_settings().apps)
    if apps not in sys.path:
        sys.path.insert(0, apps)  # where the transform is
    builder = SparkSession.builder.master("local[1]").appName("lakebound-test")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session
