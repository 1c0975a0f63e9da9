"""Names that an object has twice, with values that only Spark would have judged both.

Of a field that comes twice the last one lands. Spark finds a record bad whose first one does not fit; msgspec does so, too,
but for the types that are judged later: of these only the last value is there to be judged.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lakebound.landing.direct_read import DirectReadRefusedError
from lakebound_spark.batch.json_types import JUDGED_LATER

_PLAIN = re.compile(r'[^"\\/\x00-\x1f]+')
_ESCAPED_NAME = re.compile(rb'\\u[0-9a-fA-F]{4}[^"\\]*"\s*:')
"""In every text in which an escape stands in a plain name."""


class RepeatedNames:
    """Finds names that come twice, for one schema."""

    def __init__(self, schema: StructType) -> None:
        self._schema = schema
        self._watched = {*_watched(schema)}
        self._are_plain = all(_PLAIN.fullmatch(name) for name in self._watched)
        quoted = {name: f'"{name}"'.encode() for name in self._watched}
        self._names = {name: (text, re.compile(re.escape(text) + rb"\s*:\s*null")) for name, text in quoted.items()}

    def check(self, values: Sequence[bytes], columns: Mapping[str, pa.Array]) -> None:
        """Refuse records in which a value is lost that nobody judged.

        Args:
            values: JSON objects.
            columns: What was made of them, by field.

        Raises:
            DirectReadRefusedError: In one of them a name comes twice, and the first value may be none of its type.
        """
        if not self._watched or self._is_each_value_there(values, columns):
            return
        for index, value in enumerate(values):
            # Asked of the record alone, too: whether it is taken must not depend on the others.
            if _has_name_twice(value) and not self._is_each_value_there([value], _one_of(columns, index)):
                raise DirectReadRefusedError("a name comes twice in an object, and not each of its values was judged")

    def _is_each_value_there(self, values: Sequence[bytes], columns: Mapping[str, pa.Array]) -> bool:
        """Whether the names are as often in the texts as in what was made of them: it is told without reading them again."""
        text = b"\n".join(values)
        if not self._are_plain or (b"\\" in text and _ESCAPED_NAME.search(text)):
            return False
        found: Counter[str] = Counter()
        for field in self._schema.fields:
            column = columns[field.name]
            found[field.name] += len(column) - column.null_count
            found += _counted(column, field.dataType)
        return all(
            text.count(name) == found[own] or text.count(name) == found[own] + sum(1 for _ in null.finditer(text))
            for own, (name, null) in self._names.items()
        )


def _watched(kind: StructType) -> Iterator[str]:
    """Yield the names of fields with a value that is judged later, in the field itself or in lists and maps of it."""
    for field in kind.fields:
        inside = field.dataType
        while isinstance(inside, ArrayType | MapType):
            inside = inside.elementType if isinstance(inside, ArrayType) else inside.valueType
        if isinstance(inside, StructType):
            yield from _watched(inside)
        elif isinstance(inside, JUDGED_LATER):
            yield field.name


def _counted(column: pa.Array, kind: DataType) -> Counter[str]:
    """Return how often each field has a value inside of a column."""
    found: Counter[str] = Counter()
    if isinstance(kind, ArrayType):
        return _counted(column.values, kind.elementType)
    if isinstance(kind, MapType):
        return _counted(column.items, kind.valueType)
    if isinstance(kind, StructType):
        for index, field in enumerate(kind.fields):
            inside = column.field(index)
            found[field.name] += len(inside) - inside.null_count
            found += _counted(inside, field.dataType)
    return found


def _one_of(columns: Mapping[str, pa.Array], index: int) -> dict[str, pa.Array]:
    """Return the columns of one record: of a slice Arrow would give what is inside of all of them."""
    return {name: column.take([index]) for name, column in columns.items()}


def _has_name_twice(value: bytes) -> bool:
    """Whether any object in a JSON text has; also where that cannot be told."""
    try:
        json.loads(value, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        return True
    return False


def _once_each(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name comes twice")
