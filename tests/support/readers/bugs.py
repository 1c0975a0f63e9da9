"""What readers do wrong with tables that say nothing untrue: each by its name, and where it shows.

``tests/local/readers/test_reader_bugs.py`` shows each by a small case, and fails once it is mended: then its line
here goes, and its section in docs/readers.md.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.support.readers.predicates import Predicate
from tests.support.readers.tables import Generated, Stage
from tests.support.readers.values import KINDS


@dataclass(frozen=True)
class Question:
    """A predicate that a reader is asked."""

    table: Generated
    stage: Stage
    predicate: Predicate

    @property
    def values(self) -> list[Any]:
        """The column's values in all rows."""
        return [self.predicate.leaf.of(row) for row in self.stage.rows]

    @property
    def is_float(self) -> bool:
        """Whether the column holds floating-point numbers."""
        return self.predicate.leaf.kind is not None and self.predicate.leaf.kind.is_float

    @property
    def lists_zero(self) -> bool:
        """Whether 0 is in the list that is asked for."""
        return self.predicate.op == "in" and any(one == 0 for one in self.predicate.literals)

    @property
    def was_float32(self) -> bool:
        """Whether files hold the column as 32 bits, though it may have been widened since."""
        leaves = self.table.stages[0].leaves
        return any(leaf.path == self.predicate.leaf.path and leaf.kind is KINDS["float32"] for leaf in leaves)

    @property
    def exceeds_older_files(self) -> bool:
        """Whether the column was widened, and a literal is no value of the type that older files have."""
        first = {leaf.path: leaf.kind for leaf in self.table.stages[0].leaves}.get(self.predicate.leaf.path)
        if first is None or first is self.predicate.leaf.kind:
            return False
        return not all(_holds(first.type, one) for one in self.predicate.literals)

    @property
    def has_nan(self) -> bool:
        """Whether one of the rows has a NaN in the column."""
        return any(value != value for value in self.values)

    @property
    def is_added(self) -> bool:
        """Whether the column is younger than some of the files."""
        first = self.table.stages[0].leaves
        return self.predicate.leaf.path[0] not in {leaf.path[0] for leaf in first}


@dataclass(frozen=True)
class Bug:
    """A reader's mistake.

    Attributes:
        name: By which docs/readers.md and the small case name it.
        readers: That make it.
        touches: Whether an answer may be wrong by it.
    """

    name: str
    readers: tuple[str, ...]
    touches: Callable[[Question], bool]


def _holds(kind: pa.DataType, value: Any) -> bool:
    try:
        return bool(pa.scalar(value, kind).as_py() == value)
    except (pa.ArrowInvalid, OverflowError):
        return False


def _is_by_decimal(question: Question) -> bool:
    columns = question.table.spec.partition_by
    kinds = {leaf.path[0]: leaf.kind for leaf in question.stage.leaves}
    return any((kind := kinds.get(column)) is not None and kind.name.startswith("decimal") for column in columns)


def _is_at_an_end_of_time(question: Question) -> bool:
    days = [one.date() if isinstance(one, datetime.datetime) else one for one in question.predicate.literals]
    if not any(isinstance(day, datetime.date) and day in (datetime.date.min, datetime.date.max) for day in days):
        return False
    return any(f"({question.predicate.leaf.path[0]})" in field for field in question.table.spec.partition_by)


_LARGEST_FLOAT32 = 3.4028234663852886e38
_DATASET, _SQL, _PYICEBERG = "deltalake dataset", "deltalake SQL", "pyiceberg"
_POLARS = "polars"
_LONG_LIST = 4

BUGS = (
    Bug("nan-bound", (_DATASET,), lambda asked: asked.is_float and asked.has_nan),
    Bug("nan-literal", (_DATASET,), lambda asked: asked.predicate.has_nan),
    Bug("null-count-of-added-column", (_DATASET,), lambda asked: asked.predicate.op.endswith("null") and asked.is_added),
    Bug("negative-decimal-partition", (_DATASET,), _is_by_decimal),
    Bug("zeros-in-list", (_DATASET, _PYICEBERG), lambda asked: asked.is_float and asked.lists_zero),
    Bug(
        "zeros-in-long-list",
        (_SQL,),
        lambda asked: (
            asked.is_float
            and asked.lists_zero
            and (len(asked.predicate.literals) >= _LONG_LIST or len(asked.predicate.leaf.path) > 1)
        ),
    ),
    Bug("unequal-of-added-column", (_PYICEBERG,), lambda asked: asked.predicate.op == "<>" and asked.is_added),
    Bug(
        "literal-beyond-float32",
        (_PYICEBERG,),
        lambda asked: asked.was_float32 and any(abs(one) > _LARGEST_FLOAT32 for one in asked.predicate.literals),
    ),
    Bug(
        "nan-beside-numbers",
        ("spark", _POLARS),
        lambda asked: (
            asked.is_float and asked.has_nan and asked.table.is_by_spark and asked.stage.name in ("compacted", "evolved")
        ),
    ),
    Bug(
        "dot-beside-struct",
        ("spark",),
        lambda asked: asked.table.spec.format == "delta" and ".".join(asked.predicate.leaf.path) in _ambiguous(asked),
    ),
    Bug("dot-in-name", (_PYICEBERG,), lambda asked: "." in asked.predicate.leaf.path[0]),
    Bug(
        "end-of-time",
        (_PYICEBERG, _POLARS),
        lambda asked: asked.predicate.op in ("<", ">=", ">", "<=") and _is_at_an_end_of_time(asked),
    ),
    Bug("null-of-list", (_PYICEBERG,), lambda asked: asked.predicate.leaf.kind is None),
    Bug("literal-beyond-older-files", (_PYICEBERG,), lambda asked: asked.exceeds_older_files),
)
"""Seen in deltalake 1.6.6 (its dataset is PyArrow's, 26.0.1), PyIceberg 0.12.0, Spark 4.1.3 and Iceberg 1.12.0 in Spark."""


def _ambiguous(asked: Question) -> set[str]:
    """Return the names that a column with a dot in its name and a field of a struct have in common."""
    paths = [leaf.path for leaf in asked.stage.leaves]
    return {".".join(path) for path in paths if "." in path[0]} & {".".join(path) for path in paths if len(path) > 1}


def known_bug(reader: str, question: Question) -> Bug | None:
    """Return the mistake that a reader may make here; None where it must be right."""
    return next((bug for bug in BUGS if reader in bug.readers and bug.touches(question)), None)
