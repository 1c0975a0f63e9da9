"""The transform of a pipeline whose tables exist already, for who lands beside the stream and alters none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import SparkSession

from lakebound.landing.read_schemas import open_schemas
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.table_settling import Settled, check_settled
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.record_format import columns_of_ddl, value_fields
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.landing.parts import ReferenceData, SessionParts, plan_pipeline


@dataclass(frozen=True)
class OnTables:
    """What lands, and where.

    Attributes:
        planned: The transform.
        schemas: Columns of the tables, by their id.
        settled: How the tables stand to them.
        left_out: Schemas of records that the tables cannot follow, and why: their records stay where they are.
    """

    planned: SessionParts
    schemas: Mapping[str, pa.Schema]
    settled: Settled
    left_out: Mapping[str, str] = field(default_factory=dict)


def plan_on_tables(session: SparkSession, run: RunSpec, references: ReferenceData, *, with_quarantine: bool) -> OnTables:
    """Plan a transform, with the newest schemas of the records that the tables take.

    Args:
        session: Spark's.
        run: The orders.
        references: What the transform reads besides records.
        with_quarantine: Whether the quarantine table is among the tables.

    Raises:
        SchemaChangedError: A table cannot take the columns, or not before the pipeline's next start has altered it.
        LakeboundError: What the transform or the registry of the schemas refuses.
    """

    def planned_with(spec: PipelineSpec) -> OnTables:
        planned = plan_pipeline(session, spec, references)
        quarantine = {spec.quarantine_table.id: QUARANTINE_SCHEMA} if with_quarantine else {}
        schemas = planned.table_schemas() | quarantine
        return OnTables(planned, schemas, check_settled(spec, run.places, schemas, value_fields(spec)))

    book = open_schemas(run, columns_of_ddl)
    found = book.followed(planned_with)
    return replace(
        found, left_out={f"{part}: schema {one}": told for part, gone in book.passed_over.items() for one, told in gone.items()}
    )
