"""The pipeline's transform: loaded by name, and refused where a wider replay would give other rows."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from inspect import Parameter, signature
from types import ModuleType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lakebound.errors import TransformRefusedError, TransformSettingsError
from lakebound.first_line import first_line
from lakebound.spec.pipeline import KAFKA_COLUMN, PipelineSpec
from lakebound_spark.batch.decode import good_columns, make_decoder
from lakebound_spark.batch.session_settings import own_settings

Transform = Callable[[DataFrame], DataFrame]
References = Callable[[], Mapping[str, DataFrame]]
"""Returns the reference data of the present batch, by name."""

KAFKA_SCHEMA = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
SOURCE_ALIAS = "lakebound_source"
"""By which the transform's input is found in a plan."""
_ALLOWED = {"Project", "Filter", "Generate", "Join", "SubqueryAlias", "ResolvedHint", "View"}
_KAFKA_FIELDS = ["topic", "topic_id", "partition", "offset", "timestamp", "ordinal"]


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
    module, _, name = spec.transform.rpartition(".")
    try:
        function = getattr(_imported(spec, module), name)
    except (ImportError, AttributeError) as exc:
        raise TransformRefusedError(spec.pipeline, spec.transform, f"cannot be imported from spark_apps/: {exc}") from exc
    if not callable(function):
        raise TransformRefusedError(spec.pipeline, spec.transform, "is not a function")
    return _in_own_settings(spec, _with_references(spec, function, references))


def _imported(spec: PipelineSpec, module: str) -> ModuleType:
    """Return the module, which is to set nothing in Spark's session; one that does is imported again by the next look."""
    try:
        with own_settings(spec, "the import of its module"):
            return import_module(module)
    except TransformSettingsError:
        sys.modules.pop(module, None)
        raise


def _in_own_settings(spec: PipelineSpec, function: Transform) -> Transform:
    """Return a function that leaves the session's settings as they are.

    No two calls run at once, in whatever thread: it may name views, or keep something.
    """

    @wraps(function)
    def transform(frame: DataFrame) -> DataFrame:
        with own_settings(spec, "a call of it", getattr(frame, "sparkSession", None)):
            output = function(frame)
        if isinstance(output, DataFrame) and not _are_of_one_session(frame, output):
            reason = "returns a DataFrame of another session of Spark; use the one of its input (frame.sparkSession)"
            raise TransformRefusedError(spec.pipeline, spec.transform or "(none)", reason)
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
    return good_columns(make_decoder(spec, {}).decode(session.createDataFrame([], KAFKA_SCHEMA)))


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
    name = spec.transform or "(none)"
    source = planned_input(session, spec).alias(SOURCE_ALIAS)
    try:
        output = transform(source)
    except (TransformRefusedError, TransformSettingsError):
        raise
    except Exception as exc:
        reason = f"fails on the schema of its input: {first_line(exc)}; its input has the columns {', '.join(source.columns)}"
        raise TransformRefusedError(spec.pipeline, name, reason) from exc
    if not isinstance(output, DataFrame):
        raise TransformRefusedError(
            spec.pipeline, name, f"returns {type(output).__name__}, not a DataFrame; end it with return"
        )
    _check_kafka_column(spec, name, output)
    path = _path_to_source(output._jdf.queryExecution().analyzed())
    if path is None:
        raise TransformRefusedError(spec.pipeline, name, "does not use the DataFrame that it is given; begin with that one")
    _check_nodes(spec, name, path)
    return output


def may_multiply(output: DataFrame) -> bool:
    """Return whether one record may become several rows."""
    return any(
        node.nodeName() in ("Generate", "Join") for node in _path_to_source(output._jdf.queryExecution().analyzed()) or []
    )


def _check_kafka_column(spec: PipelineSpec, name: str, output: DataFrame) -> None:
    if KAFKA_COLUMN not in output.columns:
        reason = f"loses the column {KAFKA_COLUMN}; keep it in every select, it says where a row came from"
        raise TransformRefusedError(spec.pipeline, name, reason)
    fields = output.schema[KAFKA_COLUMN].dataType
    if not isinstance(fields, StructType) or fields.names != _KAFKA_FIELDS:
        raise TransformRefusedError(spec.pipeline, name, f"changes the fields of {KAFKA_COLUMN}; leave it as it is")
    twice = {column for column in output.columns if output.columns.count(column) > 1}
    if twice:
        raise TransformRefusedError(
            spec.pipeline, name, f"gives two columns the name {', '.join(sorted(twice))}; rename or drop one"
        )


def _check_nodes(spec: PipelineSpec, name: str, path: list[Any]) -> None:
    for node in path:
        kind = node.nodeName()
        if kind not in _ALLOWED:
            reason = (
                f"uses {kind}, whose rows depend on which records share a batch; project, filter, explode and static joins only"
            )
            raise TransformRefusedError(spec.pipeline, name, reason)
        if not node.deterministic():
            reason = f"uses a function that gives another result each time ({kind}); a replay would differ: take it out"
            raise TransformRefusedError(spec.pipeline, name, reason)
    generates = [index for index, node in enumerate(path) if node.nodeName() == "Generate"]
    if generates and not _renumbers(path[: generates[0]]):
        reason = "explodes without numbering the rows; use lakebound_spark.columns.explode, which sets _kafka.ordinal"
        raise TransformRefusedError(spec.pipeline, name, reason)


def _renumbers(above: list[Any]) -> bool:
    """Whether a projection above the explode gives ``_kafka`` another ordinal."""
    return any(
        node.nodeName() == "Project"
        and "ordinal" in _text(node.projectList())
        and f"AS {KAFKA_COLUMN}#" in _text(node.projectList())
        for node in above
    )


def _text(expressions: Any) -> str:
    text: str = expressions.mkString(" | ")
    return text


def _path_to_source(node: Any) -> list[Any] | None:
    """The plan's nodes from the root to the transform's input, or None when the input is not below ``node``."""
    if node.nodeName() == "SubqueryAlias" and node.identifier().name() == SOURCE_ALIAS:
        return []
    children = node.children()
    for index in range(children.size()):
        below = _path_to_source(children.apply(index))
        if below is not None:
            return [node, *below]
    return None
