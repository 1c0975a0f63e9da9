"""Where a mistake is that Spark or Python found in a pipeline's schema or in its transform."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Iterator
from importlib import import_module

from lakebound.errors import LakeboundError
from lakebound.first_line import first_line, python_error
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import PlacedProblem
from lakebound.spec.value import JsonValueSpec
from lakebound_spark.batch.failing_records import FirstRaised


class RaisedOnRecordsError(Exception):
    """The transform raises on more records of a sample than a stream quarantines. It holds values of records."""

    def __init__(self, how_many: str, first: FirstRaised | None) -> None:
        shown = f" (the first: {first.place}: {first.raised.text})" if first else ""
        super().__init__(f"the transform raises an error on {how_many}{shown}")


_POSITION = re.compile(r"\(line (\d+), pos (\d+)\)")
_NAME = re.compile(r"\s*`?(\w+)")


def schema_problem(spec: PipelineSpec, error: Exception, part: str = "value") -> PlacedProblem:
    """Return what is wrong with the schema of a pipeline's values, or keys.

    Args:
        spec: The pipeline.
        error: What Spark says of the schema.
        part: The key of the YAML that has the schema.
    """
    what = f"is not a schema: {first_line(error)}; write NAME TYPE, NAME TYPE, … with types of docs/how-to/schema-changes.md"
    return PlacedProblem(what, (part, "schema"), column=_column_at(spec, str(error)) if part == "value" else ())


def transform_problem(spec: PipelineSpec, error: Exception) -> PlacedProblem:
    """Return what is wrong with a pipeline's transform, at the line of it that failed, or else where it begins.

    Args:
        spec: The pipeline.
        error: What loading or planning it raised.
    """
    own = f"pipeline {spec.pipeline!r}: "
    told = str(error) if isinstance(error, LakeboundError) else _told(error)
    what = told.removeprefix(own)
    return _in_transform(spec, error, what)


def failed_on_records(spec: PipelineSpec, error: Exception) -> PlacedProblem:
    """Return that a transform that can be planned fails on values.

    Args:
        spec: The pipeline.
        error: What it raised.
    """
    if isinstance(error, RaisedOnRecordsError):
        way_out = "let it return null for such values, or filter these records out (try_cast, try_divide, a filter)"
        return _in_transform(spec, error, f"{error}; a stream ends at such a batch. {way_out}")
    told = _told(error)
    is_missing = told.startswith(("ModuleNotFoundError", "ImportError"))
    todo = "install the module for Spark's Python" if is_missing else "let it give null for such values"
    return _in_transform(spec, error, f"the transform fails on these records: {told}; {todo}")


def _told(error: Exception) -> str:
    # What a function raised in one of Spark's workers has its own class.
    return python_error(str(error)) or f"{type(error).__name__}: {first_line(error)}"


def _in_transform(spec: PipelineSpec, error: Exception, what: str) -> PlacedProblem:
    file = _file_of(spec)
    if file is None:
        return PlacedProblem(what, ("transform",))
    lines = [
        frame.lineno or 1
        for one in _causes(error)
        for frame in traceback.extract_tb(one.__traceback__)
        if frame.filename == file
    ]
    return PlacedProblem(what, ("transform",), file=file, line=lines[-1] if lines else _first_line(spec))


def _file_of(spec: PipelineSpec) -> str | None:
    """Return the file of the transform's module; None where it is not found."""
    from importlib.util import find_spec

    if spec.transform is None:
        return None
    try:
        found = find_spec(spec.transform.rpartition(".")[0])
    except (ImportError, ValueError):
        return None
    return None if found is None else found.origin


def _first_line(spec: PipelineSpec) -> int:
    module, _, name = (spec.transform or "").rpartition(".")
    try:
        return inspect.getsourcelines(getattr(import_module(module), name))[1]
    except Exception:  # it is told already why it cannot be used
        return 1


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _column_at(spec: PipelineSpec, message: str) -> tuple[str, ...]:
    """Return the column in which Spark's parser stopped."""
    found = _POSITION.search(message)
    if found is None or not isinstance(spec.value, JsonValueSpec):
        return ()
    lines = spec.value.value_schema.splitlines()
    before = "\n".join([*lines[: int(found[1]) - 1], lines[int(found[1]) - 1][: int(found[2])]])
    name = _NAME.match(before.rpartition(",")[2])
    return () if name is None else (name[1],)
