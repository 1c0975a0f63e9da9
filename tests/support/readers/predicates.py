"""Predicates on a table's columns, and which rows each one finds: plain Python, by a reader's own idea of NaN."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.support.readers.tables import Leaf, Row, Stage

Op = Literal["=", "<>", "<", "<=", ">", ">=", "in", "starts", "is null", "is not null"]
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LITERALS = 5


@dataclass(frozen=True)
class Predicate:
    """A question to a reader.

    Attributes:
        leaf: Whose values it is about.
        op: What it asks.
        literals: None, one, or of ``in`` several.
    """

    leaf: Leaf
    op: Op
    literals: tuple[Any, ...] = ()

    def __str__(self) -> str:
        told = ", ".join(ascii(one) if len(str(one)) < 60 else f"{ascii(one)[:40]}... ({len(one)})" for one in self.literals)
        # A column with a dot in its name is another one than a field of a struct.
        path = ".".join(f"`{part}`" if "." in part else part for part in self.leaf.path)
        return f"{path} {self.op} {told}".rstrip()

    @property
    def has_nan(self) -> bool:
        """Whether NaN is among its literals."""
        return any(one != one for one in self.literals)


@dataclass(frozen=True)
class Semantics:
    """How a reader compares floating-point numbers.

    Attributes:
        nan: ``largest``: NaN equals itself and is larger than all others; ``none``: no comparison holds but ``<>``.
    """

    nan: Literal["largest", "none"] = "largest"


def predicates(stage: Stage) -> Iterator[Predicate]:
    """Yield some 30 questions to each column: at, just below and just above the smallest and the largest value, and others."""
    for leaf in stage.leaves:
        yield Predicate(leaf, "is null")
        yield Predicate(leaf, "is not null")
        if leaf.kind is None:
            continue
        asked = literals(leaf, [leaf.of(row) for row in stage.rows])
        for literal in asked:
            for op in COMPARISONS:
                yield Predicate(leaf, op, (literal,))  # type: ignore[arg-type]
        yield Predicate(leaf, "in", tuple(asked[:1]))
        yield Predicate(leaf, "in", tuple(asked[1:4]))
        yield Predicate(leaf, "in", tuple(one for one in asked if one == one))
        if leaf.kind.has_prefixes:
            for prefix in sorted({text[:length] for text in asked for length in (1, 3, 33)} - {""})[:6]:
                yield Predicate(leaf, "starts", (prefix,))


def literals(leaf: Leaf, values: Sequence[Any]) -> list[Any]:
    """Return what to compare with; of the two zeros only one."""
    assert leaf.kind is not None
    known = sorted({value for value in values if value is not None and value == value})
    if not known:
        known = sorted(value for value in leaf.kind.values if value == value)
    low, high, middle = known[0], known[-1], known[len(known) // 2]
    found = [low, high, middle, leaf.kind.neighbour(low, -1), leaf.kind.neighbour(high, 1)]
    found += [leaf.kind.neighbour(middle, 1), *known]
    distinct = list(dict.fromkeys(found))[:_LITERALS]
    return [*distinct, math.nan] if leaf.kind.is_float else distinct


def sample(asked: Sequence[Predicate], count: int, seed: str) -> list[Predicate]:
    """Return so many of them, by the seed."""
    return random.Random(seed).sample(list(asked), min(count, len(asked)))


def expected(predicate: Predicate, rows: Sequence[Row], semantics: Semantics) -> list[int]:
    """Return the ids of the rows that a predicate finds."""
    return [row["id"] for row in rows if _holds(predicate, predicate.leaf.of(row), semantics)]


def _holds(predicate: Predicate, value: Any, semantics: Semantics) -> bool:
    if predicate.op in ("is null", "is not null"):
        return (value is None) == (predicate.op == "is null")
    if value is None:
        return False
    if predicate.op == "starts":
        return bool(value.startswith(predicate.literals[0]))
    if predicate.op == "in":
        return any(_compare("=", value, one, semantics) for one in predicate.literals)
    return _compare(predicate.op, value, predicate.literals[0], semantics)


def _compare(op: str, value: Any, literal: Any, semantics: Semantics) -> bool:
    compare = COMPARISONS[op]
    if not isinstance(value, float):
        if isinstance(value, str):
            value, literal = value.encode(), literal.encode()
        return compare(value, literal)
    if semantics.nan == "largest":
        return compare(_key(value), _key(literal))
    return compare(value, literal)


def _key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)
