"""Inferred DDL as Spark's types, without a JVM; and values as Spark's reader would judge them."""

from __future__ import annotations

import re

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lakebound.spec.draft.inference import Inferred

_SCALARS: dict[str, DataType] = {
    "BIGINT": LongType(),
    "BOOLEAN": BooleanType(),
    "DATE": DateType(),
    "DOUBLE": DoubleType(),
    "STRING": StringType(),
    "TIMESTAMP": TimestampType(),
}
_TOKEN = re.compile(r"`([^`]+)`|(DECIMAL\(\d+,\d+\))|([\w@$-]+)|([<>:,])")


def schema_of(inferred: Inferred) -> StructType:
    """Return the schema of a sample."""
    fields = [StructField(one.name, type_of(one.type), not one.is_required) for one in inferred.columns]
    return StructType(fields)


def type_of(ddl: str) -> DataType:
    """Return the type that an inferred text stands for."""
    tokens = [next(group for group in match.groups() if group) for match in _TOKEN.finditer(ddl)]
    found = _read(tokens)
    assert not tokens, ddl
    return found


def _read(tokens: list[str]) -> DataType:
    word = tokens.pop(0)
    if word.startswith("DECIMAL("):
        precision, scale = re.findall(r"\d+", word)
        return DecimalType(int(precision), int(scale))
    if word not in ("ARRAY", "MAP", "STRUCT"):
        return _SCALARS[word]
    assert tokens.pop(0) == "<"
    if word == "ARRAY":
        found: DataType = ArrayType(_read(tokens))
    elif word == "MAP":
        key = _read(tokens)
        assert tokens.pop(0) == ","
        found = MapType(key, _read(tokens))
    else:
        fields = []
        while True:
            name = tokens.pop(0)
            assert tokens.pop(0) == ":"
            fields.append(StructField(name, _read(tokens)))
            if tokens[0] != ",":
                break
            tokens.pop(0)
        found = StructType(fields)
    assert tokens.pop(0) == ">"
    return found
