"""What is expected, put as questions to Great Expectations: own kinds become a column of their own, which is asked about."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ByteType, ShortType

from lakebound.inspection.validation.expectations import (
    Expectation,
    Fresh,
    GxExpectation,
    RowsToSatisfy,
    UniqueOverWindow,
    UsualVolume,
    ValuesInTable,
)
from lakebound.inspection.validation.gx_catalog import CATALOG
from lakebound.inspection.validation.run import Batch
from lakebound.inspection.validation.verdict import ExpectationResult
from lakebound.inspection.validation.volume import usual_rows
from lakebound.redaction import redacted
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.tables.places import Places
from lakebound_spark.validate.copies import Copies
from lakebound_spark.validate.frames import (
    COMMITTED_AT_MS,
    helper_name,
    read_files,
    unique_window,
    with_copy_number,
    with_presence,
)
from lakebound_spark.validate.gx import Question

_ABOUT_COLUMNS = (*(name for name in CATALOG if name.startswith("expect_table_column")), "expect_column_to_exist")
_MEAN = "expect_column_mean_to_be_between"
_MS_PER_SECOND = 1000.0
_MAX_PROBLEM = 300
_PY4J = "An error occurred while calling"
"""Begins the first line of what py4j says of an exception in the JVM; the exception itself is in the second."""

_log = logging.getLogger(__name__)


@dataclass
class Prepared:
    """The rows of a batch, and what is asked of them.

    Attributes:
        plain: The table's own columns.
        frame: With the columns of Lakebound's own kinds.
        questions: About rows and values, asked of ``frame``.
        column_questions: About which columns there are, asked of ``names_only`` of ``plain``.
        skipped: Expectations that cannot be asked yet, and why.
        problems: The results of expectations that cannot be asked at all.
    """

    plain: DataFrame
    frame: DataFrame
    questions: list[Question] = field(default_factory=list)
    column_questions: list[Question] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    problems: list[ExpectationResult] = field(default_factory=list)


def prepare(session: SparkSession, batch: Batch, places: Places, copies: Copies, schema: pa.Schema) -> Prepared:
    """Return the rows of the batch's files with what is asked of them; nothing is computed but what a window needs.

    Args:
        session: Spark's.
        batch: Files, and what is expected of their rows.
        places: Where tables are.
        copies: Of files that lie in a store.
        schema: The table's columns.
    """
    with_commits = any(isinstance(one, Fresh) for one in batch.expectations)
    rows = read_files(session, batch.files, schema, copies, with_commits=with_commits)
    plain = rows.drop(COMMITTED_AT_MS)
    prepared = Prepared(plain, rows)
    for number, one in enumerate(batch.expectations, 1):
        try:
            _add(prepared, session, batch, places, copies, one, helper_name(one.label, number))
        except Exception as exc:
            _log.warning("%s: %s cannot be asked", batch.table.id, one.label, exc_info=True)
            prepared.problems.append(problem_of(one, exc))
    return prepared


def problem_of(one: Expectation, exc: Exception) -> ExpectationResult:
    """Return the result of an expectation that could not be judged."""
    lines = [line.strip(": ") for line in str(exc).splitlines() if line.strip() and not line.startswith(_PY4J)]
    # What Spark's analysis says is about names and types; no record has been read by then.
    problem = lines[0] if lines and isinstance(exc, AnalysisException) else redacted(exc)
    problem = problem[:_MAX_PROBLEM]
    return ExpectationResult(label=one.label, severity=one.severity, passed=False, problem=problem)


def names_only(rows: DataFrame) -> DataFrame:
    """Return a frame with the names of the columns alone: GX counts each field of a struct as a column, too."""
    return rows.limit(0).select(*(F.lit(None).cast("string").alias(name) for name in rows.columns))


def used_columns(prepared: Prepared) -> list[str]:
    """Return the columns of the frame that the questions need; conditions in SQL may need any."""
    if any(question.where for question in prepared.questions):
        return prepared.frame.columns
    named: set[str] = {KAFKA_COLUMN}
    for question in prepared.questions:
        for key in ("column", "column_A", "column_B"):
            named |= {str(question.kwargs[key])} if key in question.kwargs else set()
        named |= set(question.kwargs.get("column_list") or ())
    return [name for name in prepared.frame.columns if name in named]


def _add(
    prepared: Prepared, session: SparkSession, batch: Batch, places: Places, copies: Copies, one: Expectation, name: str
) -> None:
    if isinstance(one, GxExpectation):
        question = _gx(one)
        if one.expect == _MEAN:
            prepared.frame, question = _with_plain_number(prepared.frame, question, name)
        is_nested = "." in str(one.kwargs.get("column", ""))
        about_names = one.expect in _ABOUT_COLUMNS and not is_nested
        (prepared.column_questions if about_names else prepared.questions).append(question)
    elif isinstance(one, RowsToSatisfy):
        prepared.frame = prepared.frame.withColumn(name, F.expr(one.rule).cast("boolean"))
        prepared.questions.append(_true(one, name, one.mostly, f"Rows must satisfy: {one.rule}", where=one.where))
    elif isinstance(one, UniqueOverWindow):
        window = unique_window(session, one, batch.table, places, copies, prepared.plain, batch.reader, batch.due.newest)
        prepared.frame = with_copy_number(prepared.frame, window, one, name)
        notes = "Which copy of its values in the window a row is, by Kafka's time"
        prepared.questions.append(_between(one, name, 1, one.mostly, notes))
    elif isinstance(one, ValuesInTable):
        prepared.frame = with_presence(session, prepared.frame, one, places, copies, name)
        prepared.questions.append(_true(one, name, one.mostly, f"The values must stand in {one.table}"))
    elif isinstance(one, Fresh):
        produced = F.col(f"{KAFKA_COLUMN}.timestamp").cast("double")
        age = F.col(COMMITTED_AT_MS) / _MS_PER_SECOND - produced
        # A record that is older than the table could not be landed in time by anybody; its age is null, and is not judged.
        age = age if batch.began_ms is None else F.when(produced >= batch.began_ms / _MS_PER_SECOND, age)
        prepared.frame = prepared.frame.withColumn(name, age)
        prepared.questions.append(_between(one, name, one.max_seconds, one.share, "Seconds from Kafka's time to the commit"))
    elif isinstance(one, UsualVolume):
        _add_volume(prepared, batch, one)


def _add_volume(prepared: Prepared, batch: Batch, one: UsualVolume) -> None:
    since_ms = batch.due.since_ms
    usual = usual_rows(one, batch.past, since_ms, batch.due.newest.committed_at_ms) if since_ms is not None else None
    if usual is None:
        prepared.skipped[one.label] = f"fewer than {one.min_ranges} earlier ranges in its past tell what is usual"
        return
    notes = (
        f"{usual.mean_per_minute:.1f} rows per minute are usual, with a deviation of {usual.deviation_per_minute:.1f}, "
        f"by the {usual.ranges} ranges before"
    )
    bounds = {"min_value": usual.min_rows, "max_value": usual.max_rows}
    name = "expect_table_row_count_to_be_between"
    prepared.questions.append(Question(one.label, name, bounds, one.severity, is_of_rows=False, notes=_notes(one, notes)))


def _gx(one: GxExpectation) -> Question:
    is_of_rows = CATALOG[one.expect].is_of_rows
    question = Question(one.label, one.expect, one.kwargs, one.severity, is_of_rows, where=one.where, notes=one.description)
    question.expectation()  # GX refuses arguments here, and not in the midst of a suite
    return question


def _with_plain_number(rows: DataFrame, question: Question, name: str) -> tuple[DataFrame, Question]:
    """Return rows and question with a column of the helper's name where GX refuses the column for a mean.

    It looks its type up by name, so a field of a struct has none, and it takes neither TINYINT nor SMALLINT.
    """
    asked = str(question.kwargs["column"])
    number = F.col(asked)
    kind = rows.select(number).schema[0].dataType
    if isinstance(kind, ByteType | ShortType):
        number = number.cast("int")
    elif asked in rows.columns:
        return rows, question
    return rows.withColumn(name, number), replace(question, kwargs={**question.kwargs, "column": name})


def _true(one: Expectation, column: str, mostly: float, notes: str, *, where: str | None = None) -> Question:
    kwargs = {"column": column, "value_set": [True], "mostly": mostly}
    name = "expect_column_values_to_be_in_set"
    return Question(one.label, name, kwargs, one.severity, is_of_rows=True, where=where, notes=_notes(one, notes))


def _between(one: Expectation, column: str, most: float, mostly: float, notes: str) -> Question:
    kwargs = {"column": column, "max_value": most, "mostly": mostly}
    name = "expect_column_values_to_be_between"
    return Question(one.label, name, kwargs, one.severity, is_of_rows=True, notes=_notes(one, notes))


def _notes(one: Expectation, notes: str) -> str:
    return f"{notes}. {one.description}" if one.description else notes
