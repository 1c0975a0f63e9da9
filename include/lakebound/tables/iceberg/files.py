"""Parquet files as Iceberg's manifests describe them: partition, counts and bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import MetricModeTypes, MetricsMode, StatisticsCollector, compute_statistics_plan
from pyiceberg.manifest import DataFile as IcebergDataFile
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PARTITION_FIELD_ID_START, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import (
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    YearTransform,
    parse_transform,
)
from pyiceberg.typedef import Record

from lakebound.errors import FilesOutdatedError, TableMismatchError
from lakebound.redaction import redacted
from lakebound.spec import table as written
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.column_facts import FactsByColumn, Leaf
from lakebound.tables.iceberg.bounds import bounds, partition_value
from lakebound.tables.iceberg.field_ids import leaf_ids, leaves_with_ids
from lakebound.tables.iceberg.rules import RULES
from lakebound.tables.partition_values import FileRefusedError
from lakebound.tables.reconstruction import FileRange
from lakebound.tables.table import DataFile

_TRANSFORMS: dict[type[Transform[Any, Any]], str] = {
    IdentityTransform: "identity",
    YearTransform: "year",
    MonthTransform: "month",
    DayTransform: "day",
    HourTransform: "hour",
    TruncateTransform: "truncate",
}


@dataclass(frozen=True)
class _Plan:
    """What describing a file needs of a table's metadata; the same for all files of a commit."""

    table: str
    location: str
    specs: dict[int, PartitionSpec]
    default_spec_id: int
    columns: dict[int, StatisticsCollector]
    ids: dict[Leaf, int]
    is_mapped: bool


@dataclass
class _Counts:
    """Per field id, what a file's footer counts."""

    sizes: dict[int, int]
    values: dict[int, int]
    nulls: dict[int, int]


def describe(
    files: Sequence[DataFile], metadata: TableMetadata, table: str, *, may_be_earlier: bool = False
) -> list[IcebergDataFile]:
    """Return the files as a manifest holds them.

    Args:
        files: Files that are not committed yet.
        metadata: The table's metadata: schema, partitioning and location.
        table: Id of the table, for the message.
        may_be_earlier: Whether a file may be of a partitioning that the table had before, as the file in whose place it comes.

    Raises:
        FilesOutdatedError: A file was written for columns or a partitioning that are other ones now.
        TableMismatchError: A file has a column that the table has not, or spans two partitions.
    """
    if not files:
        return []
    schema = metadata.schema()
    columns = _with_kafka_bounds(compute_statistics_plan(schema, metadata.properties))
    is_mapped = TableProperties.DEFAULT_NAME_MAPPING in metadata.properties
    specs = metadata.specs() if may_be_earlier else {metadata.default_spec_id: metadata.spec()}
    ids = dict(leaf_ids(schema.as_struct()))
    plan = _Plan(table, metadata.location, specs, metadata.default_spec_id, columns, ids, is_mapped)
    return [_describe(file, plan) for file in files]


def path_in(location: str, file: DataFile) -> str:
    """Return the path of a file as manifests name it.

    Args:
        location: The table's.
        file: The file.
    """
    return file.path.uri if location.startswith("file:") else file.path.address


def _describe(file: DataFile, plan: _Plan) -> IcebergDataFile:
    spec = plan.specs.get(plan.default_spec_id if file.spec_id is None else file.spec_id)
    if spec is None:
        raise FilesOutdatedError(plan.table, "the partitioning")
    try:
        counts = _counts(file.metadata, file.facts, plan)
        lower, upper = _bounds(file, plan)
        partition = _partition(file, plan, spec)
    except (ValueError, KeyError) as exc:
        raise TableMismatchError(plan.table, f"file {file.path.name} cannot be committed: {redacted(exc)}") from exc
    free_of_nan = {
        plan.ids[leaf]: 0 for leaf, facts in file.facts.items() if isinstance(facts.low, float) and not facts.has_nan
    }
    described = IcebergDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path_in(plan.location, file),
        file_format=FileFormat.PARQUET,
        partition=partition,
        record_count=file.rows,
        file_size_in_bytes=file.size_bytes,
        column_sizes=counts.sizes,
        value_counts=counts.values,
        null_value_counts=counts.nulls,
        nan_value_counts=free_of_nan,
        lower_bounds=lower,
        upper_bounds=upper,
        split_offsets=[_first_byte(file.metadata.row_group(number)) for number in range(file.metadata.num_row_groups)],
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
    )
    described.spec_id = spec.spec_id  # no field of a manifest's entry
    return described


def _counts(footer: pq.FileMetaData, facts: FactsByColumn, plan: _Plan) -> _Counts:
    found = _Counts({}, {}, {})
    for index, (leaf, told) in enumerate(leaves_with_ids(footer.schema.to_arrow_schema())):
        number = plan.ids.get(leaf)
        if told is not None and told != number:
            raise FilesOutdatedError(plan.table, f"the column {'.'.join(leaf)}")
        if number is None:
            raise FileRefusedError(f"the table has no column {'.'.join(leaf)}")
        if told is None and not plan.is_mapped:
            raise FileRefusedError(f"its column {'.'.join(leaf)} has no field id, and the table has no name mapping")
        chunks = [footer.row_group(group).column(index) for group in range(footer.num_row_groups)]
        found.sizes[number] = sum(chunk.total_compressed_size for chunk in chunks)
        if plan.columns[number].mode.type == MetricModeTypes.NONE:
            continue
        found.values[number] = sum(chunk.num_values for chunk in chunks)
        statistics = [chunk.statistics for chunk in chunks]
        if all(one is not None and one.has_null_count for one in statistics):
            found.nulls[number] = sum(one.null_count for one in statistics)
        elif leaf in facts and (nulls := facts[leaf].nulls) is not None:
            found.nulls[number] = nulls
    return found


def _bounds(file: DataFile, plan: _Plan) -> tuple[dict[int, bytes], dict[int, bytes]]:
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for leaf, facts in file.facts.items():
        column = plan.columns[plan.ids[leaf]]
        low, high = bounds(facts, column.iceberg_type, column.mode)
        if low is not None:
            lower[column.field_id] = low
        if high is not None:
            upper[column.field_id] = high
    return lower, upper


def _partition(file: DataFile, plan: _Plan, spec: PartitionSpec) -> Record:
    by_id = {plan.ids[leaf]: facts for leaf, facts in file.facts.items()}
    return Record(
        *(
            partition_value(by_id[field.source_id], file.rows, field, plan.columns[field.source_id].iceberg_type)
            for field in spec.fields
        )
    )


def _first_byte(group: pq.RowGroupMetaData) -> int:
    column = group.column(0)
    dictionary: int | None = column.dictionary_page_offset if column.has_dictionary_page else None
    pages: int = column.data_page_offset
    return dictionary if dictionary is not None and dictionary < pages else pages


def _with_kafka_bounds(plan: dict[int, StatisticsCollector]) -> dict[int, StatisticsCollector]:
    """Return the plan with bounds for the leaves of ``_kafka``; PyIceberg keeps none of nested columns."""
    full = MetricsMode(MetricModeTypes.FULL)
    prefix = f"{KAFKA_COLUMN}."
    return {
        number: replace(found, mode=full) if found.column_name.startswith(prefix) else found for number, found in plan.items()
    }


def partition_fields(spec: PartitionSpec, schema: Schema, table: str) -> tuple[written.PartitionField, ...]:
    """Return a table's partitioning as pipelines write it.

    Args:
        spec: The table's partition spec.
        schema: Columns that the spec refers to.
        table: Id of the table, for the message.

    Raises:
        TableMismatchError: It is partitioned in a way that is not written here, such as by buckets.
    """
    fields = []
    for field in spec.fields:
        name = _TRANSFORMS.get(type(field.transform))
        column = schema.find_column_name(field.source_id)
        if name is None or column is None or schema.find_field(field.source_id) not in schema.fields:
            raise TableMismatchError(
                table, f"its partition field {field.name} ({field.transform} of {column}) is of a kind that is not written here"
            )
        width = field.transform.width if isinstance(field.transform, TruncateTransform) else None
        fields.append(written.PartitionField(name, width, column))
    return tuple(fields)


def is_written_here(spec: PartitionSpec, schema: Schema) -> bool:
    """Whether a file of a partitioning can be written: by kinds of fields that are known, of columns that the schema has."""
    try:
        partition_fields(spec, schema, "")
    except TableMismatchError:
        return False
    return True


def partition_spec(spec: TableSpec, schema: Schema) -> PartitionSpec:
    """Return the partitioning that a spec asks for."""
    fields = []
    names = RULES.partition_names(spec)
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
        try:
            field = schema.find_field(f"{KAFKA_COLUMN}.{name}")
        except ValueError:
            return None, None  # somebody renamed or dropped it
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
