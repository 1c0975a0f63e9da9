"""The pipeline's transform: loaded by name, and refused where a wider replay would give other rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, cast

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from lakebound.errors import TransformRefusedError, TransformSettingsError
from lakebound.first_line import first_line
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.decode import make_decoder
from lakebound_spark.batch.quiet_spark import without_quotes
from lakebound_spark.batch.row_keys import key_refusal
from lakebound_spark.batch.session_settings import own_settings
from lakebound_spark.batch.transform_plan import SOURCE_ALIAS, is_source, may_multiply, refusal, shape
from lakebound_spark.batch.window_plan import empty_stream, window_refusal

Transform = Callable[[DataFrame], DataFrame]
References = Callable[[], Mapping[str, DataFrame]]
"""Returns the reference data of the present batch, by name."""

KAFKA_SCHEMA = T.StructType(
    [
        T.StructField("key", T.BinaryType()),
        T.StructField("value", T.BinaryType()),
        T.StructField("topic", T.StringType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField("offset", T.LongType()),
        T.StructField("timestamp", T.TimestampType()),
        T.StructField("timestampType", T.IntegerType()),
        T.StructField(
            "headers", T.ArrayType(T.StructType([T.StructField("key", T.StringType()), T.StructField("value", T.BinaryType())]))
        ),
    ]
)
_ACTION = "lakebound: an action on the records of a transform"
"""In the error of rows that nobody may take while the function is planned."""
_MANY = 1_000
"""Records of the largest made-up frame."""
_MOST_SHAPES = 64
"""Of plans that are known to be right."""
_SOMETIMES_SEVERAL = (
    "explodes or joins in some calls, and did not at the start, so that the rows of a record were numbered as one row; "
    "explode or join in each call"
)
_AN_ACTION = (
    "runs an action on its records (collect, count, isEmpty, first, toPandas, write, …) while it is called: what it sees "
    "depends on which records share a batch, and it is not called for each; describe the rows with functions of Spark"
)


def load_transform(spec: PipelineSpec, references: References = dict) -> Transform:
    """Return the pipeline's transform; without one, the identity.

    Args:
        spec: The pipeline.
        references: Its reference data, which a function with a second parameter gets each time it is called.

    Raises:
        TransformRefusedError: It cannot be imported, is no function, or takes no reference data although the YAML has some.
        TransformSettingsError: Its module sets something in Spark's session; the function itself raises it when it does.
    """
    if spec.transform is None:
        return lambda frame: frame
    return _checked(spec, _with_references(spec, _function(spec, spec.transform), references))


def load_windows(spec: PipelineSpec) -> Transform:
    """Return the transform of a pipeline with state, of which nothing is judged yet.

    Args:
        spec: The pipeline.

    Raises:
        TransformRefusedError: It cannot be imported, or is no function.
        TransformSettingsError: Its module sets something in Spark's session; the function itself raises it when it does.
    """
    assert spec.transform is not None, "a pipeline with state has a transform"
    function = _with_references(spec, _function(spec, spec.transform), dict)

    @wraps(function)
    def transform(frame: DataFrame) -> DataFrame:
        with own_settings(spec, "a call of it", frame.sparkSession):
            return function(frame)

    return transform


def _function(spec: PipelineSpec, transform: str) -> Callable[..., Any]:
    module, _, name = transform.rpartition(".")
    try:
        function = getattr(_imported(spec, module), name)
    except (ImportError, AttributeError) as exc:
        raise TransformRefusedError(spec.pipeline, transform, f"cannot be imported from spark_apps/: {exc}") from exc
    if not callable(function):
        raise TransformRefusedError(spec.pipeline, transform, "is not a function")
    return cast("Callable[..., Any]", function)


def _imported(spec: PipelineSpec, module: str) -> ModuleType:
    """Return the module, which is to set nothing in Spark's session; one that does is imported again by the next look."""
    try:
        with own_settings(spec, "the import of its module"):
            return import_module(module)
    except TransformSettingsError:
        sys.modules.pop(module, None)
        raise


def _checked(spec: PipelineSpec, function: Transform) -> Transform:
    """Return a function that leaves the session's settings as they are, and of which each kind of plan is looked at.

    A plan of another kind than those before is judged as at the start (``planned_output``): the function may make it of some
    batches only. No two calls run at once, in whatever thread: it may name views, or keep something.
    """
    known = set[tuple[Any, ...]]()
    may_give_several = set[bool]()

    def called(frame: DataFrame) -> DataFrame:
        with own_settings(spec, "a call of it", getattr(frame, "sparkSession", None)):
            return function(frame)

    @wraps(function)
    def transform(frame: DataFrame) -> DataFrame:
        output = called(frame)
        if not isinstance(output, DataFrame):
            return output
        if not _are_of_one_session(frame, output):
            reason = "returns a DataFrame of another session of Spark; use the one of its input (frame.sparkSession)"
            raise TransformRefusedError(spec.pipeline, spec.transform or "(none)", reason)
        kind = shape(output)
        if kind not in known:
            if not is_source(frame._jdf.queryExecution().analyzed()):
                may = may_multiply(_planned(spec, called, frame))
                if may and may_give_several == {False}:
                    raise TransformRefusedError(spec.pipeline, spec.transform or "(none)", _SOMETIMES_SEVERAL)
            elif refusal(output) is None:
                may_give_several.add(may_multiply(output))
            if len(known) >= _MOST_SHAPES:
                known.clear()
            known.add(kind)
        return output

    return transform


def _are_of_one_session(frame: DataFrame, output: DataFrame) -> bool:
    """Whether both have the same settings; PySpark makes objects for one session of the JVM more than once."""
    one, other = frame.sparkSession, output.sparkSession
    return one is other or one._jsparkSession.sessionUUID() == other._jsparkSession.sessionUUID()


def _with_references(spec: PipelineSpec, function: Callable[..., DataFrame], references: References) -> Transform:
    """Return the function as one of a DataFrame alone, which is how every lane calls it."""
    needs, may_take = _second_parameter(function)
    if spec.reference and not may_take:
        reason = "has no second parameter, which gets the reference data of the YAML: a mapping of names to DataFrames"
    elif needs and not spec.reference:
        reason = "has a second parameter, for reference data, but the YAML has no 'reference'"
    else:
        reason = None
    if reason is not None:
        raise TransformRefusedError(spec.pipeline, spec.transform or "(none)", reason)
    if not spec.reference:
        return function

    @wraps(function)
    def transform(frame: DataFrame) -> DataFrame:
        return function(frame, references())

    return transform


def _second_parameter(function: Callable[..., DataFrame]) -> tuple[bool, bool]:
    """Return whether a function needs a second argument, and whether it takes one."""
    try:
        parameters = [*signature(function).parameters.values()]
    except (TypeError, ValueError):
        return False, True
    if any(one.kind is Parameter.VAR_POSITIONAL for one in parameters):
        return False, True
    positional = [one for one in parameters if one.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    return len(positional) > 1 and positional[1].default is Parameter.empty, len(positional) > 1


def planned_input(session: SparkSession, spec: PipelineSpec) -> DataFrame:
    """Return an empty DataFrame with the columns that the transform gets; no job is run."""
    return session.createDataFrame([], make_decoder(spec, {}).columns)


def planned_windows(session: SparkSession, spec: PipelineSpec, function: Transform) -> DataFrame:
    """Return a stream without records with the columns of closed windows; no job is run.

    Args:
        session: Spark session in which the function is planned.
        spec: A pipeline with state.
        function: Its transform.

    Raises:
        TransformRefusedError: It fails on the schema, or is no windowed aggregation that can be rebuilt.
        TransformSettingsError: It sets what decides rows in Spark's session.
    """
    name, columns = spec.transform or "(none)", planned_input(session, spec).schema
    state = spec.state
    assert state is not None
    if state.event_time not in columns.names or not isinstance(columns[state.event_time].dataType, T.TimestampType):
        told = ", ".join(f"{one.name} {one.dataType.simpleString()}" for one in columns)
        reason = f"has no input column {state.event_time} of type TIMESTAMP, as state.event_time says; its input is {told}"
        raise TransformRefusedError(spec.pipeline, name, reason)
    try:
        output = function(empty_stream(session, columns, spec))
    except (TransformRefusedError, TransformSettingsError):
        raise
    except Exception as exc:
        reason = f"fails on the schema of its input: {first_line(exc)}; its input has the columns {', '.join(columns.names)}"
        raise TransformRefusedError(spec.pipeline, name, reason) from exc
    if not isinstance(output, DataFrame):
        raise TransformRefusedError(
            spec.pipeline, name, f"returns {type(output).__name__}, not a DataFrame; end it with return"
        )
    reason_of_plan = window_refusal(output)
    if reason_of_plan is not None:
        raise TransformRefusedError(spec.pipeline, name, reason_of_plan)
    return output


def planned_output(session: SparkSession, spec: PipelineSpec, transform: Transform) -> DataFrame:
    """Return an empty DataFrame with the columns that the tables get.

    Args:
        session: Spark session in which the transform is planned; no job is run.
        spec: Pipeline whose records the transform gets.
        transform: The pipeline's function; the identity when it has none.

    Raises:
        TransformRefusedError: The transform fails on the schema, loses ``_kafka``, or does what a wider replay changes.
        TransformSettingsError: It sets what decides rows in Spark's session.
    """
    nothing = planned_input(session, spec)
    if spec.transform is not None:
        # Where no frame is like another, a function that asks for their rows would make other plans of them, too.
        with without_quotes(session):
            _planned(spec, transform, _unreadable(session, nothing.schema))
        for count in (1, _MANY):
            _planned(spec, transform, _made_up(session, nothing.schema, count))
    return _planned(spec, transform, nothing)


def _planned(spec: PipelineSpec, transform: Transform, records: DataFrame) -> DataFrame:
    """Return what the function makes of some records, when it may be made of them."""
    name, source = spec.transform or "(none)", records.alias(SOURCE_ALIAS)
    try:
        output = transform(source)
    except (TransformRefusedError, TransformSettingsError):
        raise
    except Exception as exc:
        # An AnalysisException quotes the plan, and no row was asked for.
        if _ACTION in str(exc) and not isinstance(exc, AnalysisException):
            raise TransformRefusedError(spec.pipeline, name, _AN_ACTION) from exc
        reason = f"fails on the schema of its input: {first_line(exc)}; its input has the columns {', '.join(source.columns)}"
        raise TransformRefusedError(spec.pipeline, name, reason) from exc
    if not isinstance(output, DataFrame):
        raise TransformRefusedError(
            spec.pipeline, name, f"returns {type(output).__name__}, not a DataFrame; end it with return"
        )
    reason_of_plan = refusal(output) or key_refusal(spec, output)
    if reason_of_plan is not None:
        raise TransformRefusedError(spec.pipeline, name, reason_of_plan)
    return output


def _made_up(session: SparkSession, schema: T.StructType, count: int) -> DataFrame:
    """Return so many records of nulls."""
    return session.range(count).select(F.lit(None).cast(schema).alias("record")).select("record.*")


def _unreadable(session: SparkSession, schema: T.StructType) -> DataFrame:
    """Return a record whose reading raises, so that an action on it is seen, whatever it asks for."""
    return _made_up(session, schema, 1).where(F.raise_error(F.lit(_ACTION)).isNull())
