"""Spark's readers of both formats, asked all predicates of a version in one query."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.support.readers.predicates import Predicate
from tests.support.readers.tables import Generated, Stage
from tests.support.readers.values import Kind

_TYPES = {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}


VIEW = "asked"


def source(table: Generated, stage: Stage) -> str:
    """Return the query of a version's rows; as a view it is looked up once for all predicates."""
    name = f"delta.`{table.at.delta_path(table.spec)}`" if table.spec.format == "delta" else f"ice.{table.spec.name}"
    return f"SELECT * FROM {name} VERSION AS OF {stage.version}"


def query(asked: Sequence[Predicate]) -> str:
    """Return the query that finds, of each predicate's number, the ids of its rows in the view."""
    return " UNION ALL ".join(
        f"SELECT {number} AS n, id FROM {VIEW} WHERE {condition(one)}" for number, one in enumerate(asked)
    )


def condition(predicate: Predicate) -> str:
    """Return a predicate in Spark's SQL."""
    name = ".".join(f"`{part}`" for part in predicate.leaf.path)
    if predicate.leaf.kind is None or not predicate.literals:
        return f"{name} {predicate.op.upper()}"
    told = [_literal(one, predicate.leaf.kind) for one in predicate.literals]
    if predicate.op == "in":
        return f"{name} IN ({', '.join(told)})"
    if predicate.op == "starts":
        return f"startswith({name}, {told[0]})"
    return f"{name} {predicate.op} {told[0]}"


def _literal(value: Any, kind: Kind) -> str:
    if isinstance(value, str):
        return f"CAST(X'{value.encode().hex()}' AS STRING)"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, datetime.datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        return f"TIMESTAMP{'' if value.tzinfo else '_NTZ'} '{text}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value.isoformat()}'"
    if isinstance(value, Decimal):
        assert pa.types.is_decimal(kind.type)
        return f"CAST('{value:f}' AS DECIMAL({kind.type.precision}, {kind.type.scale}))"
    if isinstance(value, float):
        text = repr(value) if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
        return f"CAST('{text}' AS {'FLOAT' if kind.type.bit_width == 32 else 'DOUBLE'})"
    return f"CAST('{value}' AS {_TYPES[kind.type.bit_width]})"
