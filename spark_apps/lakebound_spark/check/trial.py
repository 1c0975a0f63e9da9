"""What would become of some records of a pipeline: decoded and transformed as the stream does it, and written nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakebound.control.unknown_fields import sentence
from lakebound.errors import TransformFailsError
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sampling import TopicSample
from lakebound.landing.table_settling import Settled, compare_tables
from lakebound.spec.draft.unknown_fields import unknown_fields
from lakebound.spec.partition_warnings import partition_warnings
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.placed import PlacedProblem
from lakebound.spec.table import TableSpec
from lakebound.tables.layout import FileLayout
from lakebound.tables.table import Table, open_table
from lakebound.tables.type_names import type_name
from lakebound_spark.batch.decode import good_columns
from lakebound_spark.batch.quarantine import quarantine_columns
from lakebound_spark.batch.raised import raised_on_values
from lakebound_spark.batch.record_format import value_fields
from lakebound_spark.batch.rescue import kafka_columns
from lakebound_spark.batch.row_numbers import KEY_FIELDS, numbered
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA, table_schema
from lakebound_spark.batch.tombstones import skipped_columns
from lakebound_spark.check.landed import LandedComparison, compared, landed_rows
from lakebound_spark.check.mistakes import RaisedOnRecordsError, failed_on_records
from lakebound_spark.check.plan import check_and_plan
from lakebound_spark.landing.assembly import Assembly

_EXAMPLES = 3
"""Number of records that are named for each reason."""
_MOST_SEARCH_SECONDS = 20.0
"""A person waits for the answer, and each record takes up to 20 evaluations; the first one has the error already."""
_KAFKA_TYPE = "STRUCT (its place in Kafka)"


@dataclass(frozen=True)
class Reason:
    """Records that go to quarantine for one reason: how many, and where and why the first ones are."""

    reason: str
    records: int
    examples: list[dict[str, Any]]


@dataclass(frozen=True)
class TriedTable:
    """What a table would get.

    Attributes:
        columns: Name and type of each.
        partition_by: Its partitioning.
        changes: What the next start does with the table.
        rows: The first of them.
    """

    columns: list[tuple[str, str]]
    partition_by: list[str]
    changes: list[str]
    rows: list[dict[str, Any]]


@dataclass
class Trial:
    """What was found. Records: ``read = filtered + landed + bad``; ``rows`` are of each table.

    Attributes:
        problems: What keeps the pipeline from starting; without an output of the pipeline nothing else is known.
        warnings: What a reader of its tables should know.
        schemas: From which registry, subjects and versions the records are read, in sentences.
        ranges: Which offsets were read: topic, partition, first, next.
        against: The rows beside those that have landed; None where nobody asked, or nothing landed.
    """

    problems: list[PlacedProblem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    ranges: list[tuple[str, int, int, int]] = field(default_factory=list)
    read: int = 0
    filtered: int = 0
    landed: int = 0
    bad: int = 0
    rows: int = 0
    reasons: list[Reason] = field(default_factory=list)
    tables: dict[str, TriedTable] = field(default_factory=dict)
    schemas: list[str] = field(default_factory=list)
    against: LandedComparison | None = None

    def body(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def try_records(session: SparkSession, run: RunSpec, sample: TopicSample, rows: int, landed: Table | None = None) -> Trial:
    """Return what would become of the records.

    Args:
        session: Spark's.
        run: The pipeline's orders.
        sample: Its records.
        rows: Number of rows to show of each table.
        landed: Compare the rows with those of this table.
    """
    spec = run.spec
    checked, planned = check_and_plan(session, run, ())
    warnings = [*partition_warnings(spec, checked.columns), *dropped_fields(spec, sample)]
    found = Trial(checked.problems, warnings, [(*place, *span) for place, span in sample.ranges.items()])
    found.schemas = checked.schemas
    if planned is None or (not checked.tables and (spec.tables or checked.problems)):
        return found
    spec = planned.spec
    schemas = {one.id: table_schema(planned.output, one) for one in spec.tables if one.id in checked.tables}
    settled = Settled({}) if found.problems else compare_tables(spec, run.places.read_only(), schemas, value_fields(spec))
    assembly = Assembly(planned, sample.topic_ids, _layouts(run), settled.unhoused)
    found.read = len(sample.records)
    try:
        made, bad = land_in_memory(assembly, sample)
    except Exception as exc:
        # What a transform raises on more than single records is an answer, too: a stream would fail with it.
        found.problems.append(failed_on_records(spec, exc))
        return found
    bad = pa.concat_tables([bad, _unreadable_keys(assembly, sample).cast(bad.schema)])
    found.bad, found.rows = bad.num_rows, made.num_rows
    found.landed = len(set(_places(made)))
    found.filtered = found.read - found.bad - found.landed
    found.reasons = _reasons(bad)
    if landed is not None:
        found.against = compared(landed.spec, made, landed_rows(landed, run, sample))
    for one in spec.tables:
        if one.id in schemas:
            left_out = settled.left_out.get(one.id, frozenset())
            changes = checked.changes.get(one.id, [])
            found.tables[one.id] = _tried(one, schemas[one.id], made.slice(0, rows), left_out, changes)
    return found


def land_in_memory(assembly: Assembly, sample: TopicSample) -> tuple[pa.Table, pa.Table]:
    """Return the rows of the tables, and those of the quarantine.

    Args:
        assembly: Of the pipeline.
        sample: Records of its topics.

    Raises:
        RaisedOnRecordsError: The transform raises on more of them than single ones.
    """
    session, transform = assembly.planned.session, assembly.planned.transform
    records = session.createDataFrame(kafka_columns(sample.records))
    decoder, check = assembly.decoder, assembly.check
    try:
        made = transform(good_columns(decoder.decode(records))).toArrow()
    except (PySparkException, Py4JJavaError) as exc:
        if assembly.raising is None or raised_on_values(exc) is None:
            raise
        search = assembly.raising.search(len(sample.records), limit_seconds=_MOST_SEARCH_SECONDS)
        try:
            raised = search.among(session, good_columns(decoder.decode(records)).toArrow())
            search.end()
        except TransformFailsError as fails:
            raise RaisedOnRecordsError(fails.how_many, search.first) from exc
        if not raised.num_rows:
            raise
        decoder = decoder.refusing(raised)
        made = transform(good_columns(decoder.decode(records))).toArrow()
    if not check.holds(made):
        decoder = decoder.refusing(check.places(transform(good_columns(decoder.decode(records)))))
        made = transform(good_columns(decoder.decode(records))).toArrow()
    made, _ = numbered(made)
    return made, quarantine_columns(decoder.decode(records)).toArrow()


def dropped_fields(spec: PipelineSpec, sample: TopicSample) -> list[str]:
    """Return what `lakebound status` says later of fields that the schema does not name."""
    fields = unknown_fields(sample.records.values, spec.value)
    return [sentence(fields, spec.value)] if fields else []


def _unreadable_keys(assembly: Assembly, sample: TopicSample) -> pa.Table:
    """Return the tombstones whose key names no row of the stores, as rows of the quarantine."""
    if assembly.tombstones is None:
        return QUARANTINE_SCHEMA.empty_table()
    records = assembly.planned.session.createDataFrame(kafka_columns(sample.records))
    return assembly.tombstones.judged(skipped_columns(assembly.decoder.decode(records)).toArrow()).bad


def _layouts(run: RunSpec) -> list[FileLayout]:
    """Return the layouts of the tables that there are."""
    places = run.places.read_only()
    tables = [open_table(one, places) for one in run.spec.tables]
    return [table.layout() for table in tables if table.exists()]


def _tried(one: TableSpec, schema: pa.Schema, rows: pa.Table, left_out: frozenset[str], changes: Sequence[str]) -> TriedTable:
    kept = [column for column in schema if column.name not in left_out]
    shown = rows.select([column.name for column in kept]).to_pylist()
    columns = [(column.name, _KAFKA_TYPE if column.name == KAFKA_COLUMN else type_name(column.type)) for column in kept]
    return TriedTable(columns, list(one.partition_by), list(changes), shown)


def _reasons(bad: pa.Table) -> list[Reason]:
    """Return the bad records by reason, the most frequent first."""
    places = [{name: kafka[name] for name in KEY_FIELDS} for kafka in bad[KAFKA_COLUMN].to_pylist()]
    told = zip(bad["reason"].to_pylist(), places, bad["error"].to_pylist(), strict=True)
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for reason, place, error in sorted(told, key=lambda one: (one[1]["topic"], one[1]["partition"], one[1]["offset"])):
        by_reason.setdefault(reason, []).append({**place, "error": error})
    found = [Reason(reason, len(all_of), all_of[:_EXAMPLES]) for reason, all_of in by_reason.items()]
    return sorted(found, key=lambda one: (-one.records, one.reason))


def _places(rows: pa.Table) -> list[tuple[Any, ...]]:
    kafka = rows[KAFKA_COLUMN].combine_chunks()
    return list(zip(*(kafka.field(name).to_pylist() for name in KEY_FIELDS), strict=True))
