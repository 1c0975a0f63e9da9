"""Values of JSON records of which real time makes something else than batches do. Pure.

Python cannot run in real time: there Spark's own JSON reader decodes, and in batches ``lakebound.formats.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lakebound.spec.ddl import DdlColumn, UnclearDdlError, read_columns
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import REAL_TIME

_MOST_NAMED = 3


def real_time_value_warnings(spec: PipelineSpec) -> list[str]:
    """Return which values land otherwise, or only in batches; of a pipeline that does not run in real time none."""
    if spec.freshness != REAL_TIME or spec.value.format != "json":
        return []
    try:
        columns = [*_leaves(read_columns(spec.value.value_schema), "")]
    except UnclearDdlError:
        columns = []
    texts = [path for path, kind in columns if kind == "STRING"]
    times = [path for path, kind in columns if kind.startswith(("TIMESTAMP", "DATE"))]
    found = []
    if texts:
        found.append(
            f"freshness: real_time: Spark's JSON reader writes a number or object that stands in a STRING column anew "
            f"({_named(texts)}): 100.00 becomes 100.0. In batches such a column holds the text as it was sent"
        )
    if times:
        found.append(
            f"freshness: real_time: Spark's JSON reader takes fewer forms of ISO 8601 ({_named(times)}): a time such as "
            "2026-11-28T10:00Z or 20261128T100000Z goes to the quarantine topic, and lands only in batches"
        )
    found.append(
        "freshness: real_time: Spark's JSON reader refuses names of more than 50,000 characters, texts of more than 20 million "
        "and numbers of more than 1,000, and a field that comes twice whose first value does not fit; in batches these land"
    )
    return found


def _leaves(columns: Iterable[DdlColumn], above: str) -> Iterator[tuple[str, str]]:
    """Yield the path and type of each value that has none inside."""
    for column in columns:
        path, shape = f"{above}{column.name}", column.shape
        while shape.inside is not None:
            shape = shape.inside
        if shape.fields:
            yield from _leaves(shape.fields, f"{path}.")
        else:
            yield path, shape.name


def _named(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
