"""To which hours a batch's rows belong, by their own column; only for pipelines that announce complete hours."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StructType, TimestampNTZType, TimestampType

from lakebound.errors import LakeboundError
from lakebound.ledger.hours import HOUR_MS, RowHours, row_hours
from lakebound.spec.pipeline import KAFKA_COLUMN, KAFKA_TIMESTAMP, PipelineSpec
from lakebound_spark.column_names import column_named


class NoHourError(LakeboundError):
    """The column that is to give a row its hour does not."""

    def __init__(self, pipeline: str, column: str, problem: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: complete_hours.column: {column!r} {problem}; name a column that the tables get, of type "
            "timestamp (with unit: day also date), or leave it out for Kafka's timestamp"
        )


@dataclass(frozen=True)
class HourColumn:
    """The column of the rows that gives them their hour; None for Kafka's timestamp."""

    column: str | None = None

    @property
    def name(self) -> str:
        """As entries name it."""
        return self.column or KAFKA_TIMESTAMP

    def of_rows(self, rows: pa.Table) -> frozenset[int]:
        """Return the hours of rows that the driver holds; those without a time have none."""
        if not rows.num_rows:
            return frozenset()
        if self.column is None:
            values = pc.struct_field(rows.column(KAFKA_COLUMN), "timestamp")
        else:
            values = rows.column(self.column)
        moments = pc.drop_null(values).cast(pa.timestamp("ms"), safe=False).cast(pa.int64()).to_numpy()
        return frozenset(np.unique(moments // HOUR_MS).tolist())

    def aggregate(self) -> Column:
        """Return an aggregate of the hours as JSON text: an observation hands simple values to Python only."""
        moment = F.col(KAFKA_TIMESTAMP) if self.column is None else column_named(self.column)
        return F.to_json(F.collect_set(F.floor(moment.cast("timestamp").cast("double") * 1000 / HOUR_MS)))

    def told(self, hours: frozenset[int] | None) -> RowHours | None:
        """Return what an entry that is committed now tells of its rows' hours; None where they were not asked."""
        return None if hours is None else row_hours(self.name, hours, round(time.time() * 1000))

    @staticmethod
    def of_text(text: str | None) -> frozenset[int]:
        """Return the hours that ``aggregate`` gave."""
        return frozenset(json.loads(text)) if text else frozenset()


def make_hour_column(spec: PipelineSpec, output: StructType) -> HourColumn | None:
    """Return which column gives the rows their hour, or None where the pipeline announces no complete hours.

    Args:
        spec: The pipeline.
        output: Columns of its rows.

    Raises:
        NoHourError: There is no such column, or it is no time.
    """
    wanted = spec.complete_hours
    if wanted is None or wanted.column is None:
        return hour_column_of(spec)
    if wanted.column not in output.names:
        raise NoHourError(spec.pipeline, wanted.column, f"is not one of its columns ({', '.join(output.names)})")
    kind: DataType = output[wanted.column].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType) and not (isinstance(kind, DateType) and wanted.unit == "day"):
        raise NoHourError(spec.pipeline, wanted.column, f"is of type {kind.simpleString()}")
    return hour_column_of(spec)


def hour_column_of(spec: PipelineSpec) -> HourColumn | None:
    """Return which column gives the rows their hour, as the YAML says; None where it asks for no complete hours."""
    return None if spec.complete_hours is None else HourColumn(spec.complete_hours.column)
