"""What Spark says of a pipeline without reading Kafka: its schema, its transform, and its tables as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from lakebound.errors import LakeboundError, TableMismatchError
from lakebound.first_line import first_line
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.table_settling import compare_tables
from lakebound.spec.pipeline import PipelineSpec, TableSpec
from lakebound_spark.batch.decode import value_fields
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA, table_schema
from lakebound_spark.batch.transform import load_transform, planned_output


@dataclass
class PlannedCheck:
    """What was found.

    Attributes:
        problems: What keeps the pipeline from starting, a line each.
        tables: The columns of each table, by the table's id.
        columns: The names of these columns.
        changes: What the next start does with each table.
        conditions: What is wrong with each of the conditions that were asked about; None: nothing.
    """

    problems: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, list[str]] = field(default_factory=dict)
    changes: dict[str, list[str]] = field(default_factory=dict)
    conditions: list[str | None] = field(default_factory=list)

    def body(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def check(session: SparkSession, run: RunSpec, conditions: Sequence[str]) -> PlannedCheck:
    """Return all that is wrong with a pipeline; writes nothing.

    Args:
        session: Spark's.
        run: The pipeline's orders.
        conditions: In SQL, on the rows that its tables get.
    """
    found, spec = PlannedCheck(), run.spec
    try:
        output = planned_output(session, spec, load_transform(spec))
    except Exception as exc:  # a mistake in a schema or a transform arrives as anything
        found.problems.append(_line(spec, _told(exc)))
        return found
    found.conditions = [_wrong(output, condition) for condition in conditions]
    for one in spec.tables:
        _check_table(found, run, one, output)
    _compare(found, run, spec.quarantine_table, QUARANTINE_SCHEMA, ())
    return found


def _check_table(found: PlannedCheck, run: RunSpec, one: TableSpec, output: DataFrame) -> None:
    try:
        schema = table_schema(output.schema, one)
    except TableMismatchError as exc:
        found.problems.append(_line(run.spec, f"{one.id}: {exc.difference}"))
        return
    except (PySparkException, pa.ArrowException, TypeError) as exc:
        found.problems.append(_line(run.spec, f"{one.id}: no table holds what the pipeline makes: {first_line(exc)}"))
        return
    found.tables[one.id], found.columns[one.id] = str(schema), list(schema.names)
    _compare(found, run, one, schema, value_fields(run.spec))


def _compare(found: PlannedCheck, run: RunSpec, one: TableSpec, schema: pa.Schema, fields: Sequence[str]) -> None:
    """Compare with the table as it is, by the function by which a start is decided."""
    try:
        plan = compare_tables(run.spec, run.places.read_only(), {one.id: schema}, fields).plans[one.id]
    except LakeboundError as exc:
        found.problems.append(_line(run.spec, f"{one.id}: {exc}"))
        return
    found.problems += [_line(run.spec, f"{one.id}: {difference}") for difference in plan.differences]
    if not plan.differences and one.id != run.spec.quarantine_table.id:
        found.changes[one.id] = plan.told()


def _wrong(rows: DataFrame, condition: str) -> str | None:
    """Return what Spark finds wrong with a condition on the rows."""
    try:
        kind = rows.select(F.expr(condition)).schema[0].dataType
    except AnalysisException as exc:
        return f"is not a condition on the columns: {first_line(exc)}"
    return None if isinstance(kind, BooleanType) else f"is {kind.simpleString()}, not true or false"


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, LakeboundError) else first_line(error)


def _line(spec: PipelineSpec, text: str) -> str:
    own = f"pipeline {spec.pipeline!r}: "
    return text if text.startswith(own) else own + text
