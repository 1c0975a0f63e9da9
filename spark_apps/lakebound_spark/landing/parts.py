"""What is made of a pipeline before its tables are looked at: parts that a process has once, and parts of one session.

Three classes say how long a part lives: ``ProcessParts`` and ``SessionParts`` here, and ``Assembly`` for what belongs to one
pipeline as its schema, topics and tables are now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from lakebound.landing.spark_command import is_local
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.tables.schemas import normalise_schema
from lakebound.tables.table import KAFKA_TYPE
from lakebound_spark.batch.row_hours import HourColumn, make_hour_column
from lakebound_spark.batch.schema import table_schema
from lakebound_spark.batch.topic_rows import with_json, without_json
from lakebound_spark.batch.transform import (
    Transform,
    load_transform,
    load_windows,
    planned_input,
    planned_output,
    planned_windows,
)
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS, may_multiply
from lakebound_spark.batch.window_plan import rows_id, window_id


class ReferenceData(Protocol):
    """The reference data that a transform gets (``lakebound_spark.reference.book``)."""

    def frames(self) -> Mapping[str, DataFrame]:
        """Return that of the present batch, by name."""

    def tokens(self) -> Mapping[str, str]:
        """Return what differs between any two versions, by name."""


@dataclass(frozen=True)
class NoReferences:
    """The reference data of a pipeline that has none."""

    def frames(self) -> Mapping[str, DataFrame]:
        """Return none."""
        return {}

    def tokens(self) -> Mapping[str, str]:
        """Return none."""
        return {}


@dataclass(frozen=True)
class ProcessParts:
    """What all pipelines of a process share: one Spark. Python imports the module of each transform once, too."""

    context: SparkContext

    @property
    def master(self) -> str:
        """Where Spark runs."""
        return str(self.context.master)

    @property
    def cores(self) -> int:
        """How many tasks run at the same time, as far as executors have come."""
        return int(self.context.defaultParallelism)

    @property
    def is_on_cluster(self) -> bool:
        """Whether executors are processes of their own."""
        return not is_local(self.master)


@dataclass(frozen=True)
class SessionParts:
    """What a session of Spark has of a pipeline: the plans of its transform. Made anew when its schema or function is another.

    Attributes:
        session: The session.
        spec: The pipeline.
        function: Its transform, as it is called.
        transform: The same, with the JSON of each row where rows go to topics.
        rows: An empty DataFrame with the columns of the rows.
        references: What the function reads besides records.
    """

    session: SparkSession
    spec: PipelineSpec
    function: Transform
    transform: Transform
    rows: DataFrame
    references: ReferenceData

    @property
    def process(self) -> ProcessParts:
        """The parts that this session shares with all others."""
        return ProcessParts(self.session.sparkContext)

    @property
    def has_transform(self) -> bool:
        """Whether a person wrote the function."""
        return self.spec.transform is not None

    @property
    def spark_makes_rows(self) -> bool:
        """Whether decoded records are no rows yet: there is a function, or rows get their JSON."""
        return self.transform is not self.function or self.has_transform

    @property
    def output(self) -> StructType:
        """Columns of the rows, with their JSON."""
        return self.rows.schema

    @cached_property
    def arrow_rows(self) -> pa.Schema:
        """The same in Arrow's types."""
        return normalise_schema(to_arrow_schema(self.output))

    @cached_property
    def arrow_columns(self) -> pa.Schema:
        """Columns of the rows without their JSON, in Arrow's types."""
        return normalise_schema(to_arrow_schema(without_json(self.output)))

    @cached_property
    def given(self) -> StructType:
        """Columns that the transform gets."""
        return planned_input(self.session, self.spec).schema

    @cached_property
    def multiplies(self) -> bool:
        """Whether a record may become several rows."""
        return self.spec.state is None and may_multiply(self.rows)

    @cached_property
    def hour_column(self) -> HourColumn | None:
        """What gives a row its hour, where that is asked.

        Raises:
            NoHourError: The rows have no such column, or it is no time.
        """
        return make_hour_column(self.spec, self.output)

    @cached_property
    def window_id(self) -> str:
        """What tells the aggregation of a pipeline with state from another one."""
        return window_id(self.spec, self._planned_rows)

    def rows_id(self, source: str) -> str:
        """Return what tells apart transforms that make other rows of the same windows.

        Args:
            source: Hash of the code.
        """
        return rows_id(self._planned_rows, source)

    @cached_property
    def _planned_rows(self) -> DataFrame:
        return self.function(planned_input(self.session, self.spec).alias(SOURCE_ALIAS))

    def table_schemas(self) -> dict[str, pa.Schema]:
        """Return the columns of each table, by its id.

        Raises:
            TableMismatchError: A partition column is not there.
            NoHourError: As of ``hour_column``: no table is made then.
        """
        _ = self.hour_column
        columns = without_json(self.output)
        return {one.id: table_schema(columns, one) for one in self.spec.tables}


def plan_pipeline(
    session: SparkSession, spec: PipelineSpec, references: ReferenceData | None = None, *, with_messages: bool = False
) -> SessionParts:
    """Load and plan a pipeline's transform; no job is run, and nothing is written.

    Args:
        session: In which it is planned.
        spec: The pipeline.
        references: What the function reads besides records; None without any.
        with_messages: Whether each row gets its JSON, for topics.

    Raises:
        TransformRefusedError: The function cannot be loaded, fails on the schema, or does what a wider replay changes.
        TransformSettingsError: It sets what decides rows in Spark's session.
    """
    references = references or NoReferences()
    if spec.state is not None:
        return _plan_windows(session, spec, references)
    function = load_transform(spec, references.frames)
    transform = with_json(function) if with_messages else function
    return SessionParts(session, spec, function, transform, planned_output(session, spec, transform), references)


def _plan_windows(session: SparkSession, spec: PipelineSpec, references: ReferenceData) -> SessionParts:
    """Load and plan a transform that makes windows. Its rows come from many records: ``_kafka`` names their topic alone."""
    function = load_windows(spec)

    def transform(frame: DataFrame) -> DataFrame:
        return function(frame).withColumn(KAFKA_COLUMN, _of_many_records(spec))

    rows = planned_windows(session, spec, function).withColumn(KAFKA_COLUMN, _of_many_records(spec))
    return SessionParts(session, spec, function, transform, rows, references)


def _of_many_records(spec: PipelineSpec) -> Column:
    said = {"topic": F.lit(spec.topics[0]), "ordinal": F.lit(0)}
    fields = from_arrow_schema(pa.schema(list(KAFKA_TYPE))).fields
    return F.struct(*(said.get(one.name, F.lit(None)).cast(one.dataType).alias(one.name) for one in fields))
