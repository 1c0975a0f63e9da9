"""Types of Avro, as a schema has them. Pure.

Source: https://avro.apache.org/docs/1.12.0/specification/.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NO_DEFAULT: Any = object()
"""Of a field without a default; None is the default null."""


@dataclass(frozen=True)
class Logical:
    """What a value of a simpler type stands for.

    Attributes:
        name: As Avro has it, such as ``timestamp-millis``.
        precision: Of a decimal.
        scale: Of a decimal.
    """

    name: str
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.name == "decimal" else self.name


@dataclass(frozen=True)
class Primitive:
    """A type without a name of its own, with nothing inside.

    Attributes:
        kind: ``null``, ``boolean``, ``int``, ``long``, ``float``, ``double``, ``bytes`` or ``string``.
        logical: What it stands for.
    """

    kind: str
    logical: Logical | None = None

    def __str__(self) -> str:
        return self.kind if self.logical is None else f"{self.kind} ({self.logical})"


@dataclass(frozen=True)
class Named:
    """A type with a name.

    Attributes:
        name: Its full name.
        aliases: Other full names, under which it reads what was written.
    """

    name: str
    aliases: tuple[str, ...]

    @property
    def short_name(self) -> str:
        """The name without the namespace."""
        return self.name.rpartition(".")[2]

    def reads(self, written: Named) -> bool:
        """Whether it may read a type by its name: namespaces do not count."""
        return written.short_name in {self.short_name, *(alias.rpartition(".")[2] for alias in self.aliases)}


@dataclass(frozen=True)
class Fixed(Named):
    """So many bytes."""

    size: int
    logical: Logical | None = None

    def __str__(self) -> str:
        return f"fixed {self.name}" if self.logical is None else f"fixed {self.name} ({self.logical})"


@dataclass(frozen=True)
class Enum(Named):
    """One of some symbols; the default is that of readers which do not have a symbol."""

    symbols: tuple[str, ...]
    default: str | None = None

    def __str__(self) -> str:
        return f"enum {self.name}"


@dataclass(frozen=True)
class Field:
    """A field of a record; its default is JSON."""

    name: str
    type: AvroType
    aliases: tuple[str, ...] = ()
    default: Any = field(default=NO_DEFAULT, compare=False)


@dataclass(frozen=True)
class Record(Named):
    """Fields in their order."""

    fields: tuple[Field, ...]

    def field_of(self, name: str) -> Field | None:
        """Return the field of a name."""
        return next((one for one in self.fields if one.name == name), None)

    def __str__(self) -> str:
        return f"record {self.name}"


@dataclass(frozen=True)
class Array:
    """Values of one type."""

    items: AvroType

    def __str__(self) -> str:
        return "array"


@dataclass(frozen=True)
class Map:
    """Values of one type, by texts."""

    values: AvroType

    def __str__(self) -> str:
        return "map"


@dataclass(frozen=True)
class Union:
    """A value of one of some types."""

    branches: tuple[AvroType, ...]

    @property
    def named(self) -> tuple[AvroType, ...]:
        """The types beside null."""
        return tuple(branch for branch in self.branches if not is_null(branch))

    @property
    def has_null(self) -> bool:
        """Whether null is one of the types."""
        return len(self.named) < len(self.branches)

    def __str__(self) -> str:
        return f"union of {', '.join(map(str, self.branches))}"


AvroType = Primitive | Fixed | Enum | Record | Array | Map | Union


def is_null(kind: AvroType) -> bool:
    """Whether a type has only the value null."""
    return isinstance(kind, Primitive) and kind.kind == "null"


def type_key(kind: AvroType) -> str:
    """Return the name by which a union knows a type: its own without the namespace, or that of the simple type."""
    if isinstance(kind, Named):
        return kind.short_name
    return kind.kind if isinstance(kind, Primitive) else str(kind)


def inside(path: str, step: str) -> str:
    """Return the dotted path of a part."""
    return f"{path}.{step}" if path else step
