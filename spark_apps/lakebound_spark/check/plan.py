"""What Spark says of a pipeline without reading Kafka: its schema, its transform, and its tables as they stand."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from lakebound.control.schemas_in_use import told_schemas
from lakebound.errors import (
    LakeboundError,
    ReferenceRefusedError,
    RegistryRefusalError,
    RegistryUnavailableError,
    SchemaChangedError,
    TableMismatchError,
)
from lakebound.first_line import first_line
from lakebound.landing.read_schemas import SchemaBook, open_schemas
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.table_settling import compare_tables
from lakebound.redaction import redacted
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import Origin, PlacedProblem
from lakebound.spec.real_time import REAL_TIME
from lakebound.spec.table import TableSpec
from lakebound.spec.yaml_source import Keys
from lakebound.tables.type_names import told_columns, type_name
from lakebound_spark.batch.record_format import columns_of_ddl, key_schema, value_fields, value_schema
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA, table_schema
from lakebound_spark.batch.transform import load_transform
from lakebound_spark.check.mistakes import schema_problem, transform_problem
from lakebound_spark.landing.parts import SessionParts, plan_pipeline
from lakebound_spark.real_time.refusals import real_time_refusal
from lakebound_spark.reference.book import open_book
from lakebound_spark.session import guarded_conditions
from lakebound_spark.stream.opening import newest_entries
from lakebound_spark.stream.target_kind import application_targets

log = logging.getLogger(__name__)


@dataclass
class PlannedCheck:
    """What was found.

    Attributes:
        problems: What keeps the pipeline from starting.
        tables: The columns of each table, by the table's id.
        columns: The types of these columns, by their names.
        changes: What the next start does with each table.
        schemas: From which registry, subjects and versions its records are read, in sentences.
        conditions: What is wrong with each of the conditions that were asked about; None: nothing.
    """

    problems: list[PlacedProblem] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    columns: dict[str, dict[str, str]] = field(default_factory=dict)
    changes: dict[str, list[str]] = field(default_factory=dict)
    schemas: list[str] = field(default_factory=list)
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
    return check_and_plan(session, run, conditions)[0]


def check_and_plan(session: SparkSession, run: RunSpec, conditions: Sequence[str]) -> tuple[PlannedCheck, SessionParts | None]:
    """Return all that is wrong with a pipeline, and its transform as it was planned; None where it cannot be planned.

    Args:
        session: Spark's.
        run: The pipeline's orders.
        conditions: In SQL, on the rows that its tables get.
    """
    found = PlannedCheck()
    spec = _with_schemas(found, session, run)
    if spec is None:
        return found, None
    run = run.model_copy(update={"spec": spec})
    try:
        references = open_book(session, spec, run.places.read_only())
    except ReferenceRefusedError as exc:
        found.problems.append(PlacedProblem(f"{spec.reference[exc.name].told}: {exc.problem}", ("reference", exc.name)))
        return found, None
    try:
        planned = plan_pipeline(session, spec, references)
    except Exception as exc:  # a mistake in a transform arrives as anything
        found.problems.append(transform_problem(spec, exc))
        return found, None
    output = planned.rows
    if run.freshness == REAL_TIME:
        _check_real_time(found, session, run)
    with guarded_conditions(session):
        found.conditions = [_wrong(output, condition) for condition in conditions]
    made = _made_by_transform(output.schema, value_schema(spec))
    for position, one in enumerate(spec.tables):
        _check_table(found, run, one, ("tables", position), output, made)
    for kind in application_targets():
        for position, other in enumerate(spec.targets_by_key[kind.key]):
            for problem, key in kind.plan_problems(run, other, output):
                found.problems.append(PlacedProblem(problem, (kind.key, position, *((key,) if key else ()))))
    _compare(found, run, spec.quarantine_table, ("quarantine",), QUARANTINE_SCHEMA, frozenset(QUARANTINE_SCHEMA.names))
    return found, planned


def _with_schemas(found: PlannedCheck, session: SparkSession, run: RunSpec) -> PipelineSpec | None:
    """Return the pipeline with its schemas, as a start follows them; None where something is wrong, which is noted."""
    found.problems += _schema_problems(run.spec)
    if found.problems:
        return None
    try:
        book = open_schemas(run, columns_of_ddl, keeps=False)
        if book.has_registry:
            _follow(session, run, book)
        spec = book.spec
        found.schemas = [*told_schemas(book.in_use())]
    except LakeboundError as exc:
        part = getattr(exc, "part", next(iter(run.spec.schema_sources), "value"))
        found.problems.append(PlacedProblem(str(exc), (part,)))
        return None
    found.problems += _schema_problems(spec)
    return None if found.problems else spec


def _follow(session: SparkSession, run: RunSpec, book: SchemaBook) -> None:
    """Let the book pass over newer schemas that the tables cannot follow, as a start does.

    Where that does not help, or something else is wrong, it stays with the newest ones: what is wrong is told of these.

    Raises:
        LakeboundError: The registry is away, or refuses.
    """
    places = run.places.read_only()

    def compare(spec: PipelineSpec) -> None:
        planned = plan_pipeline(session, spec, open_book(session, spec, places))
        settled = compare_tables(spec, places, planned.table_schemas(), value_fields(spec))
        if settled.differences:
            raise SchemaChangedError(spec.pipeline, settled.differences)

    try:
        book.know_entries(entry.schemas for entry in newest_entries(run.model_copy(update={"places": places})))
        book.followed(compare)
    except (RegistryUnavailableError, RegistryRefusalError):
        raise
    except Exception as exc:  # a mistake in a transform arrives as anything
        log.debug("the newest schemas are checked: %s", redacted(exc))


def _schema_problems(spec: PipelineSpec) -> list[PlacedProblem]:
    """Return what Spark finds wrong with the schemas of values and keys, as far as they are known."""
    found = []
    unread = {part for part, source in spec.schema_sources.items() if source.value_schema is None and not source.is_read}
    for part, schema_of in (("value", value_schema), ("key", key_schema)):
        if part in unread:
            continue
        try:
            schema_of(spec)
        except Exception as exc:  # Spark says in many ways that a text is no schema
            found.append(schema_problem(spec, exc, part))
    return found


def _check_real_time(found: PlannedCheck, session: SparkSession, run: RunSpec) -> None:
    try:
        reason = real_time_refusal(session, run.spec, load_transform(run.spec))
    except Exception as exc:  # a table that the transform joins cannot be read
        found.problems.append(transform_problem(run.spec, exc))
        return
    if reason is not None:
        keys = ("transform",) if run.spec.transform is not None else ("freshness",)
        found.problems.append(PlacedProblem(f"freshness: real_time: {reason}; use freshness: 0ms", keys))


def _check_table(
    found: PlannedCheck, run: RunSpec, one: TableSpec, keys: Keys, output: DataFrame, made: frozenset[str]
) -> None:
    try:
        schema = table_schema(output.schema, one)
    except TableMismatchError as exc:
        found.problems.append(PlacedProblem(f"{one.id}: {exc.difference}", (*keys, "partition_by")))
        return
    except (PySparkException, pa.ArrowException, TypeError) as exc:
        what = f"{one.id}: no table holds what the pipeline makes: {first_line(exc)}; give the column another type by a cast"
        found.problems.append(PlacedProblem(what, ("transform",) if run.spec.transform else keys))
        return
    found.tables[one.id], found.columns[one.id] = told_columns(schema), {field.name: type_name(field.type) for field in schema}
    _compare(found, run, one, keys, schema, made)


def _compare(found: PlannedCheck, run: RunSpec, one: TableSpec, keys: Keys, schema: pa.Schema, made: frozenset[str]) -> None:
    """Compare with the table as it is, by the function by which a start is decided."""
    spec = run.spec
    fields = () if one.id == spec.quarantine_table.id else value_fields(spec)
    try:
        plan = compare_tables(spec, run.places.read_only(), {one.id: schema}, fields).plans[one.id]
    except LakeboundError as exc:
        found.problems.append(PlacedProblem(f"{one.id}: {exc}", keys))
        return
    for difference in plan.differences:
        origin: Origin = "transform" if difference.column[:1] and difference.column[0] in made else "schema"
        place = (*keys, *difference.keys)
        found.problems.append(PlacedProblem(f"{one.id}: {difference}", place, column=difference.column, origin=origin))
    if not plan.differences and one.id != spec.quarantine_table.id:
        found.changes[one.id] = plan.told()


def _made_by_transform(output: StructType, given: StructType | None) -> frozenset[str]:
    """Return the columns that are not as the records' schema has them."""
    known = {field.name: field.dataType for field in given} if given is not None else {}
    return frozenset(field.name for field in output if known.get(field.name) != field.dataType)


def _wrong(rows: DataFrame, condition: str) -> str | None:
    """Return what Spark finds wrong with a condition on the rows."""
    try:
        kind = rows.select(F.expr(condition)).schema[0].dataType
    except AnalysisException as exc:
        return f"is not a condition on the columns: {first_line(exc)}"
    return None if isinstance(kind, BooleanType) else f"is {kind.simpleString()}, not true or false"
