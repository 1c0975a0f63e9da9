"""What an existing table needs so that it takes what the pipeline produces now, or why it cannot have that. Pure.

A column that only the table has stays, and is null from now on. Everything else is decided by the pipeline's
``schema_evolution`` and by what the format can do. The widenings are those of Iceberg's format version 2
(https://iceberg.apache.org/spec/#schema-evolution); Delta's need the table feature ``typeWidening``, which deltalake does
not write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from lakebound.formats.same_names import as_compared
from lakebound.spec.pipeline import KAFKA_COLUMN, SchemaEvolution
from lakebound.tables.format_rules import FormatRules, rules_of
from lakebound.tables.renames import likely_renames, question
from lakebound.tables.schemas import normalise_schema, unusable_names
from lakebound.tables.type_names import type_name

Path = tuple[str, ...]
"""Names from the column down; ``element`` of a list, ``key`` and ``value`` of a map."""

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True)
class Addition:
    """A column or field that the table lacks.

    Attributes:
        path: Its names.
        type: Its type.
        former: Name of a field beside it, of the same type, that only the table has: it may have been renamed.
    """

    path: Path
    type: pa.DataType
    former: str | None = None

    def __str__(self) -> str:
        return f"column {name_of(self.path)} ({type_name(self.type)})"

    def asked(self) -> str:
        """Return the question whether it was renamed, to be appended; empty where it does not look so."""
        if self.former is None:
            return ""
        return f", and {self.former}, which only the table has, gets nulls: {question(self.path, self.former)}"


@dataclass(frozen=True)
class Widening:
    """A column whose type holds less than the pipeline's."""

    path: Path
    found: pa.DataType
    wanted: pa.DataType

    def __str__(self) -> str:
        return f"column {name_of(self.path)} from {type_name(self.found)} to {type_name(self.wanted)}"


@dataclass(frozen=True)
class SchemaDifference:
    """What forbids landing, of one column, with what to do."""

    path: Path
    text: str

    def __str__(self) -> str:
        return f"column {name_of(self.path)} {self.text}"


@dataclass(frozen=True)
class SchemaPlan:
    """What is to be done with one table.

    Attributes:
        additions: Columns to be added.
        widenings: Types to be widened.
        left_out: Columns of the pipeline that the table does not get, as ``schema_evolution`` says.
        unfilled: Columns that only the table has.
        differences: Why nothing can be landed; then nothing is done.
    """

    additions: tuple[Addition, ...] = ()
    widenings: tuple[Widening, ...] = ()
    left_out: tuple[Addition, ...] = ()
    unfilled: tuple[str, ...] = ()
    differences: tuple[SchemaDifference, ...] = ()

    @property
    def is_change(self) -> bool:
        """Whether the table is to be altered."""
        return bool(self.additions or self.widenings)

    def told(self) -> list[str]:
        """Return every change and difference as a sentence."""
        return [
            *(str(difference) for difference in self.differences),
            *(f"{addition} is added{addition.asked()}" for addition in self.additions),
            *(f"{widening} is widened" for widening in self.widenings),
            *(f"{addition} is left out, as schema_evolution says{addition.asked()}" for addition in self.left_out),
            *(f"column {name} is only in the table: it stays, and gets nulls" for name in self.unfilled),
        ]


def plan_schema(
    found: pa.Schema,
    wanted: pa.Schema,
    policy: SchemaEvolution,
    format_: str,
    value_fields: Collection[str] = (),
    reserved: Collection[str] = (),
) -> SchemaPlan:
    """Return what an existing table needs.

    Args:
        found: Its columns.
        wanted: Those that the pipeline produces.
        policy: The pipeline's ``schema_evolution``.
        format_: The table's.
        value_fields: Fields of the records' schema: of ``quarantine`` only these can be told in a record.
        reserved: Names that no new column may have: those of the table's partition fields.
    """
    unusable = unusable_names(format_, wanted.names)
    comparison = _Comparison(policy, rules_of(format_), frozenset(value_fields), frozenset(reserved), unusable)
    return comparison.plan(normalise_schema(found), normalise_schema(wanted))


def name_of(path: Path) -> str:
    """Return a column's name as it is written."""
    return ".".join(path)


@dataclass
class _Comparison:
    """Walks over two schemas and keeps what it finds."""

    policy: SchemaEvolution
    rules: FormatRules
    value_fields: frozenset[str]
    reserved: frozenset[str]
    unusable: Mapping[str, str]
    additions: list[Addition] = field(default_factory=list)
    widenings: list[Widening] = field(default_factory=list)
    left_out: list[Addition] = field(default_factory=list)
    differences: list[SchemaDifference] = field(default_factory=list)

    def plan(self, found: pa.Schema, wanted: pa.Schema) -> SchemaPlan:
        self._fields((), list(found), list(wanted))
        unfilled = tuple(name for name in found.names if name not in wanted.names)
        if self.differences:
            return SchemaPlan(unfilled=unfilled, differences=tuple(self.differences))
        return SchemaPlan(tuple(self.additions), tuple(self.widenings), tuple(self.left_out), unfilled)

    def _fields(self, path: Path, found: list[pa.Field], wanted: list[pa.Field]) -> None:
        known = {one.name: one.type for one in found}
        folded = {as_compared(one.name): one.name for one in found}
        kept = {one.name for one in wanted}
        lost = {name: kind for name, kind in known.items() if name not in kept}
        former = likely_renames(lost, {one.name: one.type for one in wanted if one.name not in known})
        for one in wanted:
            here = (*path, one.name)
            if one.name in known:
                self._types(here, known[one.name], one.type)
            elif as_compared(one.name) in folded:
                self._differ(here, f"differs from {folded[as_compared(one.name)]} in the table by upper and lower case only")
            else:
                self._missing(Addition(here, one.type, former.get(one.name)))

    def _missing(self, addition: Addition) -> None:
        path, kind = addition.path, type_name(addition.type)
        if path[0] == KAFKA_COLUMN:
            self._differ(path, f"({kind}) is missing in the table: the table was not made by a pipeline")
        elif self.policy in ("add_columns", "refuse") and path in {(name,) for name in self.reserved}:
            self._differ(
                path, f"({kind}) is missing in the table, which has a partition field of this name: give it another name"
            )
        elif self.policy in ("add_columns", "refuse") and len(path) == 1 and path[0] in self.unusable:
            self._differ(path, f"({kind}) is missing in the table, and {self.unusable[path[0]]}")
        elif self.policy == "add_columns":
            self.additions.append(addition)
        elif self.policy == "refuse" and addition.former is not None:
            self._differ(
                path,
                f"({kind}) is missing in the table, and the pipeline no longer has {addition.former}, which the table has: "
                f"{question(path, addition.former)}; if it is a new column, schema_evolution: add_columns adds it, and "
                f"{addition.former} gets nulls",
            )
        elif self.policy == "refuse":
            self._differ(path, f"({kind}) is missing in the table: schema_evolution: add_columns adds it")
        elif len(path) > 1:
            self._differ(path, f"({kind}) is missing in the table, and a field inside of a column cannot be left out")
        elif self.policy == "quarantine" and path[0] not in self.value_fields:
            self._differ(path, f"({kind}) is missing in the table, and is not one of the fields that identify a record")
        else:
            self.left_out.append(addition)

    def _types(self, path: Path, found: pa.DataType, wanted: pa.DataType) -> None:
        types = pa.types
        if found == wanted:
            return
        if types.is_struct(found) and types.is_struct(wanted):
            self._fields(path, list(found), list(wanted))
        elif types.is_list(found) and types.is_list(wanted):
            self._types((*path, "element"), found.value_type, wanted.value_type)
        elif types.is_map(found) and types.is_map(wanted):
            if found.key_type != wanted.key_type:
                self._differ((*path, "key"), f"{_says(found.key_type, wanted.key_type)}: keys are never changed")
            self._types((*path, "value"), found.item_type, wanted.item_type)
        elif not holds(found, wanted, is_nested=len(path) > 1):
            self._narrower(path, found, wanted)

    def _narrower(self, path: Path, found: pa.DataType, wanted: pa.DataType) -> None:
        says = _says(found, wanted)
        if path[0] == KAFKA_COLUMN or not is_wider(found, wanted):
            self._differ(path, f"{says}: its values do not fit; give the new one another name, or land into a new table")
        elif self.rules.not_widened:
            self._differ(
                path,
                f"{says}: {self.rules.not_widened}; keep {type_name(found)}, and what does not fit goes to quarantine, or land "
                f"into a new table",
            )
        elif self.policy != "add_columns":
            self._differ(path, f"{says}: schema_evolution: add_columns widens it")
        else:
            self.widenings.append(Widening(path, found, wanted))

    def _differ(self, path: Path, text: str) -> None:
        self.differences.append(SchemaDifference(path, text))


def _says(found: pa.DataType, wanted: pa.DataType) -> str:
    return f"is {type_name(found)} in the table, {type_name(wanted)} in the pipeline"


def holds(found: pa.DataType, wanted: pa.DataType, *, is_nested: bool) -> bool:
    """Return whether a table's type takes every value of the pipeline's as it is.

    Iceberg has no integers below 32 bits, and Parquet stores the small ones in 32. Beyond that only a column's own values are
    cast when they are written, not those inside of it.

    Args:
        found: Type of the column in the table.
        wanted: Type that the pipeline gives the column.
        is_nested: Whether the column is inside of another one: a struct, a list or a map.
    """
    small = found == pa.int32() and wanted in _INTEGERS[:2]
    return small if is_nested else small or is_wider(wanted, found)


def is_wider(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Return whether the second holds all that the first does, and more, and no more precisely."""
    if narrow in _INTEGERS and wide in _INTEGERS:
        return _INTEGERS.index(narrow) < _INTEGERS.index(wide)
    if pa.types.is_decimal(narrow) and pa.types.is_decimal(wide):
        return bool(narrow.scale == wide.scale and narrow.precision < wide.precision)
    return bool(narrow == pa.float32() and wide == pa.float64())


def names(additions: Collection[Addition]) -> Iterator[str]:
    """Yield the names of columns."""
    for addition in additions:
        yield name_of(addition.path)
