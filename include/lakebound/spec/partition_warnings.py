"""Partitionings under which a pipeline's tables hold different values, each as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.spec.ddl import UnclearDdlError, read_columns
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.value import BytesValueSpec


def partition_warnings(spec: PipelineSpec) -> Iterator[str]:
    """Yield a sentence for each text column by which a Delta table is partitioned beside an Iceberg table.

    By its protocol Delta reads a partition value ``""`` back as null; Iceberg keeps it.
    """
    if not any(table.format == "iceberg" for table in spec.tables):
        return
    texts = _texts(spec)
    for table in spec.tables:
        for column in table.partition_by if table.format == "delta" else ():
            if texts is None or column in texts:
                yield (
                    f"{table.id}: it is partitioned by {column!r}{', which may be a string' if texts is None else ''}: Delta "
                    f"reads an empty string in a partition column as null, but the pipeline's Iceberg tables keep it. If "
                    f"records can have empty strings there, replace them in a transform, or choose another partitioning for "
                    f"the Delta table (docs/readers.md)"
                )


def _texts(spec: PipelineSpec) -> frozenset[str] | None:
    """Return the columns that hold strings; None where only Spark can tell."""
    if spec.transform is not None:
        return None
    if isinstance(spec.value, BytesValueSpec):
        return frozenset()
    try:
        return frozenset(column.name for column in read_columns(spec.value.value_schema) if column.type == "STRING")
    except UnclearDdlError:
        return None
