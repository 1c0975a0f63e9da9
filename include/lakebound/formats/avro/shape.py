"""What is read of a record: the parts of a writer's schema in the order of their bytes, each with a slot on the tape. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Literal

from lakebound.formats.avro.types import Array, AvroType, Enum, Fixed, Map, Primitive, Record, Union, inside, is_null, type_key


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a record.

    Attributes:
        slot: Its number: where what was read of it is on the tape.
        path: Dotted.
        type: As it was written.
    """

    slot: int
    path: str
    type: AvroType


@dataclass(frozen=True, eq=False)
class NullPart(Part):
    """No bytes."""


@dataclass(frozen=True, eq=False)
class NumberPart(Part):
    """A whole number of 32 or 64 bits, in one to ten bytes. On the tape: the number."""

    bits: Literal[32, 64]


@dataclass(frozen=True, eq=False)
class ChoicePart(Part):
    """A byte for false or true, or the number of a symbol. On the tape: the number."""

    choices: int
    is_byte: bool


@dataclass(frozen=True, eq=False)
class FixedPart(Part):
    """So many bytes. On the tape: where they begin."""

    size: int


@dataclass(frozen=True, eq=False)
class SpanPart(Part):
    """A length and so many bytes. On the tape: where they begin and end."""


@dataclass(frozen=True, eq=False)
class RecordPart(Part):
    """Fields, each after the other. On the tape: nothing."""

    fields: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class UnionPart(Part):
    """The number of a branch, and its value. On the tape: the number."""

    branches: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class RepeatedPart(Part):
    """Blocks of a count and as many items. On the tape: how many there are of all.

    Attributes:
        key: Of each item of a map, before the item.
        item: The value.
        least_bytes: That an item takes.
    """

    key: SpanPart | None
    item: Part
    least_bytes: int


def shape_of(kind: AvroType, path: str = "") -> Part:
    """Return what is read of a type.

    Args:
        kind: As it was written.
        path: Dotted, of all of it.
    """
    return _Shaper().part(kind, path)


class _Shaper:
    def __init__(self) -> None:
        self._slots = count()

    def part(self, kind: AvroType, path: str) -> Part:
        slot = next(self._slots)
        if isinstance(kind, Record):
            return RecordPart(slot, path, kind, tuple(self.part(one.type, inside(path, one.name)) for one in kind.fields))
        if isinstance(kind, Union):
            several = len(kind.named) > 1
            steps = [inside(path, type_key(one)) if several and not is_null(one) else path for one in kind.branches]
            return UnionPart(slot, path, kind, tuple(map(self.part, kind.branches, steps)))
        if isinstance(kind, Array):
            item = self.part(kind.items, inside(path, "element"))
            return RepeatedPart(slot, path, kind, None, item, least_bytes(item))
        if isinstance(kind, Map):
            key = SpanPart(next(self._slots), inside(path, "key"), Primitive("string"))
            item = self.part(kind.values, inside(path, "value"))
            return RepeatedPart(slot, path, kind, key, item, 1 + least_bytes(item))
        if isinstance(kind, Fixed):
            return FixedPart(slot, path, kind, kind.size)
        if isinstance(kind, Enum):
            return ChoicePart(slot, path, kind, len(kind.symbols), is_byte=False)
        return _primitive(slot, path, kind)


def _primitive(slot: int, path: str, kind: Primitive) -> Part:
    if kind.kind == "null":
        return NullPart(slot, path, kind)
    if kind.kind == "boolean":
        return ChoicePart(slot, path, kind, 2, is_byte=True)
    if kind.kind in ("int", "long"):
        return NumberPart(slot, path, kind, 32 if kind.kind == "int" else 64)
    if kind.kind in ("float", "double"):
        return FixedPart(slot, path, kind, 4 if kind.kind == "float" else 8)
    return SpanPart(slot, path, kind)


def least_bytes(part: Part) -> int:
    """Return how many bytes a part takes at least; one that may take none takes never any."""
    if isinstance(part, RecordPart):
        return sum(map(least_bytes, part.fields))
    if isinstance(part, FixedPart):
        return part.size
    return 0 if isinstance(part, NullPart) else 1
