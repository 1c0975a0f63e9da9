"""The OpenLineage events of one application: a run of the job that its pipeline is. Pure; holds no value of any record.

Every event tells inputs, outputs and facets in full, so that one which is lost leaves no hole. Counts are those since the last
event that arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal

import attr
import pyarrow as pa
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    RunFacet,
    dataset_version_dataset,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
    storage_dataset,
    symlinks_dataset,
)

from lakebound.landing.lineage_names import DatasetName, topic_name
from lakebound.ledger.marks import NextOffsets

PRODUCER = f"urn:lakebound:{version('lakebound')}"
OFFSETS_FACET = "lakebound_offsets"
OFFSETS_SCHEMA = "urn:lakebound:facet:offsets:1-0-0"
"""Names docs/lineage-offsets.schema.json; a change of that file takes another version."""

State = Literal["START", "RUNNING", "COMPLETE", "FAIL", "ABORT"]
"""ABORT: another application has taken over."""


@dataclass(frozen=True)
class LineageRun:
    """What all events of one application have in common.

    Attributes:
        run_id: A UUID of its own.
        namespace: Of the job.
        pipeline: The job.
        bootstrap_servers: Of the topics.
        topics: What it reads.
        started_at: Epoch seconds at which its stream started.
        spark_version: The processing engine's.
    """

    run_id: str
    namespace: str
    pipeline: str
    bootstrap_servers: str
    topics: tuple[str, ...]
    started_at: float
    spark_version: str


@dataclass(frozen=True)
class LineageTable:
    """A table that the application writes.

    Attributes:
        id: As Lakebound calls it.
        name: As OpenLineage calls it: where it is.
        alias: Its name in the Iceberg catalog; None of Delta.
        layer: Its format.
        schema: Its columns.
    """

    id: str
    name: DatasetName
    alias: DatasetName | None
    layer: str
    schema: pa.Schema


@dataclass(frozen=True)
class Landed:
    """What an application has committed to a table since it started.

    Attributes:
        rows: How many rows.
        size_bytes: Bytes of the data files.
        files: How many data files.
        version: The table's version after the last commit; empty before the first snapshot.
        next_offsets: Per topic and partition; None of the quarantine, which does not decide where a stream goes on.
    """

    rows: int = 0
    size_bytes: int = 0
    files: int = 0
    version: str = ""
    next_offsets: NextOffsets | None = None


@attr.define
class OffsetsDatasetFacet(DatasetFacet):
    """How far each partition of each topic has been landed in a table: the offset that is read next."""

    nextOffsets: Mapping[str, Mapping[str, int]] = attr.field(factory=dict)

    @staticmethod
    def _get_schema() -> str:
        return OFFSETS_SCHEMA


def make_event(
    run: LineageRun,
    state: State,
    at: float,
    tables: Sequence[LineageTable],
    landed: Mapping[str, Landed],
    told: Mapping[str, Landed],
    *,
    error: str | None = None,
) -> RunEvent:
    """Return an event.

    Args:
        run: The application.
        state: What becomes of the run.
        at: Epoch seconds of the event.
        tables: What it writes.
        landed: What it has committed so far, by the table's id.
        told: What it had committed at the last event that arrived, likewise.
        error: Sentence on what ended it, which quotes no record; None unless it failed.
    """
    return RunEvent(
        eventType=RunState[state],
        eventTime=datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds"),
        run=Run(runId=run.run_id, facets=_run_facets(run, error)),
        job=Job(namespace=run.namespace, name=run.pipeline, facets={"jobType": _job_type()}),
        inputs=[InputDataset(*topic_name(run.bootstrap_servers, topic)) for topic in run.topics],
        outputs=[_output(table, landed.get(table.id, Landed()), told.get(table.id, Landed())) for table in tables],
        producer=PRODUCER,
    )


def _run_facets(run: LineageRun, error: str | None) -> dict[str, RunFacet]:
    engine = processing_engine_run.ProcessingEngineRunFacet(
        version=run.spark_version, name="spark", openlineageAdapterVersion=version("lakebound"), producer=PRODUCER
    )
    if error is None:
        return {"processing_engine": engine}
    message = error_message_run.ErrorMessageRunFacet(message=error, programmingLanguage="PYTHON", producer=PRODUCER)
    return {"processing_engine": engine, "errorMessage": message}


def _job_type() -> job_type_job.JobTypeJobFacet:
    return job_type_job.JobTypeJobFacet(
        processingType="STREAMING", integration="LAKEBOUND", jobType="PIPELINE", producer=PRODUCER
    )


def _output(table: LineageTable, landed: Landed, told: Landed) -> OutputDataset:
    facets: dict[str, DatasetFacet] = {
        "schema": schema_dataset.SchemaDatasetFacet(fields=[_column(field) for field in table.schema], producer=PRODUCER),
        "storage": storage_dataset.StorageDatasetFacet(storageLayer=table.layer, fileFormat="parquet", producer=PRODUCER),
    }
    if landed.version:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=landed.version, producer=PRODUCER)
    if table.alias is not None:
        alias = symlinks_dataset.Identifier(namespace=table.alias.namespace, name=table.alias.name, type="TABLE")
        facets["symlinks"] = symlinks_dataset.SymlinksDatasetFacet(identifiers=[alias], producer=PRODUCER)
    if landed.next_offsets is not None:
        offsets = {
            topic: {str(partition): offset for partition, offset in sorted(partitions.items())}
            for topic, partitions in landed.next_offsets.items()
        }
        facets[OFFSETS_FACET] = OffsetsDatasetFacet(nextOffsets=offsets, producer=PRODUCER)
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=landed.rows - told.rows,
        size=landed.size_bytes - told.size_bytes,
        fileCount=landed.files - told.files,
        producer=PRODUCER,
    )
    return OutputDataset(*table.name, facets=facets, outputFacets={"outputStatistics": statistics})


def _column(field: pa.Field) -> schema_dataset.SchemaDatasetFacetFields:
    kind, parts = field.type, list[pa.Field]()
    if pa.types.is_struct(kind):
        told, parts = "struct", list(kind)
    elif pa.types.is_map(kind):
        told, parts = "map", [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        told, parts = "array", [pa.field("_element", kind.value_type)]
    else:
        told = str(kind)
    return schema_dataset.SchemaDatasetFacetFields(name=field.name, type=told, fields=[_column(part) for part in parts])
