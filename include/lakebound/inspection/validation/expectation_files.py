"""Reads files of expectations, ``include/expectations/<pipeline>.yaml``: of each mistake the file, line and field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lakebound.errors import LakeboundError
from lakebound.inspection.validation.expectation_mistakes import column_mistakes, parse, sql_texts, table_mistakes
from lakebound.inspection.validation.expectation_types import TableColumns, type_mistakes
from lakebound.inspection.validation.expectations import Expectation, ExpectationFile
from lakebound.settings import Settings
from lakebound.spec.ddl import UnclearDdlError
from lakebound.spec.input_columns import input_columns
from lakebound.spec.load import MOST_LINES
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound.spec.pipeline_files import SUFFIXES
from lakebound.spec.problem_lines import problem_line
from lakebound.spec.value_bounds import value_refusals
from lakebound.spec.yaml_source import Keys, Mistake, UnreadableYamlError, YamlSource, read_yaml


class InvalidExpectationsError(LakeboundError):
    """A file of expectations is wrong.

    Attributes:
        problems: A line per mistake: file, line, field, what is wrong.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))


class NoExpectationsError(LakeboundError):
    """Nothing is expected of the pipeline."""

    def __init__(self, pipeline: str, path: Path) -> None:
        super().__init__(f"pipeline {pipeline!r}: the file {path} does not exist; write the expectations on its tables there")


def expectations_path(pipeline: str, settings: Settings) -> Path:
    """Return the file of a pipeline's expectations, or where it would be: beside the folder of pipelines."""
    folder = settings.pipelines.parent / "expectations"
    known = (folder / f"{pipeline}{suffix}" for suffix in SUFFIXES)
    return next((path for path in known if path.is_file()), folder / f"{pipeline}{SUFFIXES[0]}")


def load_expectations(spec: PipelineSpec, settings: Settings) -> ExpectationFile | None:
    """Return what is expected of the pipeline; None where there is no file.

    Raises:
        InvalidExpectationsError: The file is wrong.
    """
    path = expectations_path(spec.pipeline, settings)
    return _load(path, spec)[0] if path.is_file() else None


def check_expectations(spec: PipelineSpec, settings: Settings, tables: TableColumns) -> list[str]:
    """Return what is wrong with the pipeline's file, columns and their types included; nothing where there is no file.

    Args:
        spec: The pipeline.
        settings: This machine's.
        tables: The columns, with their types, of those tables whose columns are known.
    """
    path = expectations_path(spec.pipeline, settings)
    if not path.is_file():
        return []
    try:
        file, source = _load(path, spec)
    except InvalidExpectationsError as exc:
        return exc.problems
    return _lines(path, [*column_mistakes(file, tables, source), *type_mistakes(file, tables, source)])


def conditions(spec: PipelineSpec, settings: Settings) -> list[tuple[Keys, str, tuple[str, ...]]]:
    """Return the file's conditions in SQL: where each stands, its text, and the ids of the tables that it is for."""
    file = _right(spec, settings)
    if file is None:
        return []
    ids = [table.id for table in spec.tables]
    return [(keys, text, _tables_of(one, file, ids)) for keys, (text, one) in sql_texts(file).items()]


def condition_problem(spec: PipelineSpec, settings: Settings, keys: Keys, what: str) -> str:
    """Return the line that says what Spark finds wrong with a condition.

    Args:
        spec: Pipeline whose expectations were checked.
        settings: This machine's settings; they say where the file of expectations is.
        keys: Keys and list positions that lead to the condition in the file; the line is found by them.
        what: What Spark says of the condition.
    """
    path = expectations_path(spec.pipeline, settings)
    return problem_line(path, Mistake(read_yaml(path).line_of(keys), what, keys))


def columns_without_spark(spec: PipelineSpec, existing: TableColumns) -> dict[str, Mapping[str, str]]:
    """Return the columns of the tables that can be known without Spark.

    Args:
        spec: The pipeline.
        existing: The columns of those tables that are there already.
    """
    known = dict(existing)
    own = own_columns(spec)
    if own is not None:
        for table in spec.tables:
            known.setdefault(table.id, own)
    return known


def own_columns(spec: PipelineSpec) -> dict[str, str] | None:
    """Return the columns that a pipeline gives its tables, with their types; None where a transform or registry says."""
    if spec.transform is not None:
        return None
    try:
        return {**{column.name: column.type.partition("<")[0] for column in input_columns(spec)}, KAFKA_COLUMN: "STRUCT"}
    except UnclearDdlError:
        return None


def _right(spec: PipelineSpec, settings: Settings) -> ExpectationFile | None:
    try:
        return load_expectations(spec, settings)
    except InvalidExpectationsError:
        return None


def _tables_of(one: Expectation, file: ExpectationFile, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(table for table in ids if one in file.of(table))


def _load(path: Path, spec: PipelineSpec) -> tuple[ExpectationFile, YamlSource]:
    try:
        source = read_yaml(path)
    except UnreadableYamlError as exc:
        raise InvalidExpectationsError([problem_line(path, exc.mistake)]) from None
    try:
        file, mistakes = parse(source)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as exc:
        # One file, whatever it says, hides no other pipeline's. Without its text: it may repeat a value.
        what = f"holds a value that cannot be judged ({type(exc).__name__}); undo the last change of this file"
        raise InvalidExpectationsError([problem_line(path, Mistake(1, what))]) from None
    if file is not None:
        refused = [Mistake(source.line_of(keys), what, keys) for keys, what in value_refusals(file)]
        mistakes = [*table_mistakes(file, spec, source), *refused, *_of_windows(file, spec, source)]
    if file is None or mistakes:
        raise InvalidExpectationsError(_lines(path, mistakes))
    return file, source


def _of_windows(file: ExpectationFile, spec: PipelineSpec, source: YamlSource) -> list[Mistake]:
    """Return the mistake of copies into the quarantine where rows are of windows, which name no record."""
    if spec.state is None or file.on_failure != "quarantine":
        return []
    keys: Keys = ("on_failure",)
    what = "quarantine copies records, and rows of windows come from many: the pipeline has 'state'; use alert or stop"
    return [Mistake(source.line_of(keys), what, keys)]


def _lines(path: Path, mistakes: Sequence[Mistake]) -> list[str]:
    return [problem_line(path, mistake) for mistake in sorted(mistakes, key=lambda mistake: mistake.line)[:MOST_LINES]]
