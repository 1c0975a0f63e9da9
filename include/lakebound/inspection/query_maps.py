"""Values of maps in a query, as ``tags['colour']``: which the SQL of Polars cannot index."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_INDEXED = re.compile(r"\b([A-Za-z_]\w*)\s*\[\s*'((?:[^']|'')*)'\s*\]")


def with_map_values(sql: str, frames: Mapping[str, pl.LazyFrame]) -> tuple[str, dict[str, pl.LazyFrame]]:
    """Return a query in which each indexed map is a column, and the frames with these columns; null where a map lacks the key.

    Args:
        sql: The query.
        frames: The tables by the names that the query may call them.
    """
    asked = {(found[1], found[2].replace("''", "'")) for found in _INDEXED.finditer(sql)}
    if not asked:
        return sql, dict(frames)
    made: set[str] = set()
    wider: dict[str, pl.LazyFrame] = {}
    for table, frame in frames.items():
        maps = _maps_of(frame)
        own = sorted((column, key) for column, key in asked if column in maps)
        wider[table] = frame.with_columns(*(_value_of(column, key) for column, key in own))
        made |= {column for column, _ in own}

    def as_column(found: re.Match[str]) -> str:
        return f'"{_name(found[1], found[2].replace(chr(39) * 2, chr(39)))}"' if found[1] in made else found[0]

    return _INDEXED.sub(as_column, sql), wider


def _maps_of(frame: pl.LazyFrame) -> set[str]:
    import polars as pl

    return {name for name, kind in frame.collect_schema().items() if isinstance(kind, pl.Map)}


def _name(column: str, key: str) -> str:
    return f"{column}['{key}']".replace('"', "'")


def _value_of(column: str, key: str) -> pl.Expr:
    import polars as pl

    return pl.col(column).map.get(key).alias(_name(column, key))
