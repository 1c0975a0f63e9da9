"""Partitionings under which a pipeline's tables hold different values, each as a sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lakebound.spec.pipeline import PipelineSpec


def partition_warnings(spec: PipelineSpec, tables: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield a sentence for each text column by which a Delta table is partitioned beside an Iceberg table.

    By its protocol Delta reads a partition value ``""`` back as null; Iceberg keeps it.

    Args:
        spec: The pipeline.
        tables: The types of the tables' columns, as Spark's DDL writes them, by table id and name, as far as they are known: a
            transform may make any column, and only Spark tells its type.
    """
    if not any(table.format == "iceberg" for table in spec.tables):
        return
    for table in spec.tables:
        for column in table.partition_by if table.format == "delta" else ():
            if tables.get(table.id, {}).get(column, "").upper() == "STRING":
                yield (
                    f"{table.id}: it is partitioned by {column!r}: Delta reads an empty string in a partition column as null, "
                    f"but the pipeline's Iceberg tables keep it. If records can have empty strings there, replace them in a "
                    f"transform, or choose another partitioning for the Delta table (docs/readers.md)"
                )
