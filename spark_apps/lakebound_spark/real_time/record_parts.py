"""Keys, headers and values that are not decoded as columns in real time, as ``lakebound.formats`` makes them in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakebound.formats.composed import KEY as KEY_LABEL
from lakebound.spec.headers import ALL_DDL, HeaderSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch.decode import HEADERS, KEY, PROBLEM

_NUMBER = r"^[+-]?[0-9]{1,40}\z"


@dataclass(frozen=True)
class RecordPart:
    """Columns of a part of a record, and a text that says why it has none; null where it has."""

    columns: tuple[Column, ...]
    problem: Column | None = None


def plain_part(column: str, raw: Column, kind: Literal["string", "bytes"], label: str) -> RecordPart:
    """Return bytes as a column of their own.

    Args:
        column: Its name.
        raw: The bytes.
        kind: Whether they are a text.
        label: With which the detail of a problem begins.
    """
    if kind == "bytes":
        return RecordPart((raw.alias(column),))
    text = raw.cast("string")
    return RecordPart((text.alias(column),), F.when(~F.is_valid_utf8(text), F.lit(f"not_utf8\t{label} is not UTF-8")))


def key_part(spec: PipelineSpec) -> RecordPart | None:
    """Return what becomes of a pipeline's keys; None where they do not land."""
    if spec.whole_key is None:
        return None
    column, kind = spec.whole_key
    return plain_part(column, F.col(KEY), "string" if kind == "string" else "bytes", f"{KEY_LABEL}: the value")


def header_parts(spec: PipelineSpec) -> list[RecordPart]:
    """Return what becomes of a pipeline's headers."""
    return [_header_part(one) for one in spec.headers]


def together(value: RecordPart, key: RecordPart | None, headers: Sequence[RecordPart]) -> tuple[Column, Column]:
    """Return all columns as ``_parsed``, and ``_problem``: of several the value's, then the key's."""
    keys = [] if key is None else [key]
    columns = [column for part in (*keys, value, *headers) for column in part.columns]
    problems = [part.problem for part in (value, *keys, *headers) if part.problem is not None]
    problem = F.coalesce(*problems) if problems else F.lit(None).cast("string")
    return F.struct(*columns).alias("_parsed"), problem.alias(PROBLEM)


def _header_part(one: HeaderSpec) -> RecordPart:
    if one.all:
        return RecordPart((F.coalesce(F.col(HEADERS), F.array().cast(ALL_DDL)).alias(one.column),))
    named = F.filter(F.col(HEADERS), lambda header: header["name"] == F.lit(one.name))
    raw = F.try_element_at(named, F.lit(-1)).getField("value")
    if one.ddl == "BINARY":
        return RecordPart((raw.alias(one.column),))
    text, label = raw.cast("string"), f"header {one.name}:"
    if one.ddl == "STRING":
        return plain_part(one.column, raw, "string", label)
    number = F.when(text.rlike(_NUMBER), text.try_cast(one.ddl))
    wrong = F.when(raw.isNotNull() & number.isNull(), F.lit(f"does_not_fit\t{label} is no {one.ddl} in decimal text"))
    return RecordPart((number.alias(one.column),), wrong)
