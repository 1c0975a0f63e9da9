"""Parquet files as Iceberg's manifests describe them: partition, counts and bounds, from the footer that is at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import (
    DataFileStatistics,
    MetricModeTypes,
    MetricsMode,
    StatisticsCollector,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import Transform, parse_transform

from lakebound.errors import TableMismatchError
from lakebound.spec import TableSpec
from lakebound.tables import KAFKA_COLUMN, DataFile
from lakebound.tables.reconstruction import FileRange
from lakebound.tables.schemas import partition_names


@dataclass(frozen=True)
class _Plan:
    """What describing a file needs of a table's metadata; the same for all files of a commit."""

    location: str
    schema: Schema
    spec: PartitionSpec
    columns: dict[int, StatisticsCollector]
    ids: dict[str, int]


def describe(files: Sequence[DataFile], metadata: TableMetadata, table: str) -> list[IcebergDataFile]:
    """Return the files as a manifest holds them.

    Raises:
        TableMismatchError: A file has a column that the table has not, or spans two partitions.
    """
    if not files:
        return []
    schema = metadata.schema()
    columns = _with_kafka_bounds(compute_statistics_plan(schema, metadata.properties))
    plan = _Plan(metadata.location, schema, metadata.spec(), columns, parquet_path_to_id_mapping(schema))
    return [_describe(file, plan, table) for file in files]


def _describe(file: DataFile, plan: _Plan, table: str) -> IcebergDataFile:
    try:
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=file.metadata, stats_columns=plan.columns, parquet_column_mapping=plan.ids
        )
        _check_bounds(plan.spec, plan.schema, statistics)
        partition = statistics.partition(plan.spec, plan.schema)
    except (ValueError, KeyError) as exc:
        raise TableMismatchError(table, f"file {file.path} cannot be committed: {exc}") from exc
    return IcebergDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{file.path}" if plan.location.startswith("file:") else str(file.path),
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=file.size_bytes,
        sort_order_id=None,
        spec_id=plan.spec.spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def _with_kafka_bounds(plan: dict[int, StatisticsCollector]) -> dict[int, StatisticsCollector]:
    """Return the plan with bounds for the leaves of ``_kafka``; PyIceberg keeps none of nested columns."""
    full = MetricsMode(MetricModeTypes.FULL)
    prefix = f"{KAFKA_COLUMN}."
    return {
        number: replace(found, mode=full) if found.column_name.startswith(prefix) else found for number, found in plan.items()
    }


def _check_bounds(spec: PartitionSpec, schema: Schema, statistics: DataFileStatistics) -> None:
    """Raise ValueError where the partition cannot be told from bounds: nulls beside values, or values without bounds."""
    for field in spec.fields:
        nulls = statistics.null_value_counts.get(field.source_id)
        bounds = statistics.column_aggregates.get(field.source_id)
        bounded = bounds is not None and bounds.current_min is not None
        if not (nulls == 0 and bounded) and nulls != statistics.record_count:
            name = schema.find_column_name(field.source_id)
            raise ValueError(f"its statistics do not tell one partition of {name}")


def partition_spec(spec: TableSpec, schema: Schema) -> PartitionSpec:
    """Return the partitioning that a spec asks for."""
    fields = []
    names = partition_names(spec)
    for number, (name, argument, column) in enumerate(spec.partition_fields()):
        transform: Transform[Any, Any] = parse_transform(f"{name}[{argument}]" if argument else name)
        fields.append(
            PartitionField(
                source_id=schema.find_field(column).field_id,
                field_id=PARTITION_FIELD_ID_START + number,
                transform=transform,
                name=names[number],
            )
        )
    return PartitionSpec(*fields)


def file_range(file: IcebergDataFile, schema: Schema) -> FileRange:
    """Return what a file's bounds say of ``_kafka``."""

    def bounds(name: str) -> tuple[Any, Any]:
        field = schema.find_field(f"{KAFKA_COLUMN}.{name}")
        low, high = ((found or {}).get(field.field_id) for found in (file.lower_bounds, file.upper_bounds))
        if low is None or high is None:
            return None, None
        return from_bytes(field.field_type, low), from_bytes(field.field_type, high)  # type: ignore[arg-type]

    return FileRange(
        rows=file.record_count if file.content == DataFileContent.DATA else None,
        topic=bounds("topic"),
        topic_id=bounds("topic_id"),
        partition=bounds("partition"),
        offset=bounds("offset"),
        ordinal=bounds("ordinal"),
    )
