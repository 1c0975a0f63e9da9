"""What becomes of what a writer wrote, for who reads it with another schema: Avro's rules, and what lies beyond them. Pure.

Beyond them: a field that only the writer has keeps its value; outside of unions, names of types do not count; an enum is read
as a string; null is what a nullable column takes; a value that the type of the column would change does not fit.
Source: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakebound.formats.avro import types
from lakebound.formats.avro.field_names import FieldNames
from lakebound.formats.avro.leaves import READ_AS, column_name, leaf_conversion
from lakebound.formats.avro.makers import Branches, Leaf, Lists, Maker, Member, Nulls, Refused, Same, Struct
from lakebound.formats.avro.shape import Part, RecordPart, RepeatedPart, UnionPart
from lakebound.formats.merged_fields import names_in_other_case
from lakebound.formats.schemas import UnreadableSchemaError

DefaultOf = Callable[[types.AvroType, Any, pa.DataType, str], pa.Array]
"""Makes the one value of a default: its type, the JSON of it, the column's type, and its path."""


@dataclass(frozen=True)
class Resolved:
    """Makers of what is needed.

    Attributes:
        maker: Of a record.
        wanted: Slots that it needs.
        lists: Those of them that are of lists.
    """

    maker: Maker
    wanted: frozenset[int]
    lists: frozenset[int]


def resolved(
    part: Part, reader: types.AvroType, kind: pa.DataType, default_of: DefaultOf, *, by_name: bool = False
) -> Resolved:
    """Return what makes a column of what was read.

    Args:
        part: As it was written.
        reader: As what it is read.
        kind: Of the column.
        default_of: Makes defaults.
        by_name: Whether the outermost type is read only as one of its name.

    Raises:
        UnreadableSchemaError: It cannot be read so, or does not go into the column; the part is named.
    """
    resolver = _Resolver(default_of)
    maker = resolver.maker(part, reader, kind, by_name=by_name)
    return Resolved(maker, frozenset(resolver.wanted), frozenset(resolver.lists))


class _Resolver:
    def __init__(self, default_of: DefaultOf) -> None:
        self._default_of = default_of
        self.wanted: set[int] = set()
        self.lists: set[int] = set()

    def maker(self, part: Part, reader: types.AvroType, kind: pa.DataType, *, by_name: bool = False) -> Maker:
        if isinstance(part, UnionPart):
            return self._union(part, reader, kind)
        if types.is_null(part.type):  # it is the column that says whether null may be there
            return Nulls(kind)
        if isinstance(reader, types.Union):
            return self._into_union(part, reader, kind, by_name=by_name)
        if by_name and isinstance(part.type, types.Named) and isinstance(reader, types.Named) and not reader.reads(part.type):
            raise UnreadableSchemaError(part.path, f"{part.type} cannot be read as {reader}")
        if isinstance(part, RecordPart) and isinstance(reader, types.Record):
            if not pa.types.is_struct(kind):
                raise UnreadableSchemaError(part.path, f"{part.type} does not go into {column_name(kind)}")
            return self._record(part, reader, kind)
        if isinstance(part, RepeatedPart) and isinstance(reader, types.Array | types.Map):
            return self._repeated(part, reader, kind)
        if not isinstance(reader, types.Primitive | types.Fixed | types.Enum):
            raise UnreadableSchemaError(part.path, f"{part.type} cannot be read as {reader}")
        convert = leaf_conversion(part, reader, kind)
        self.wanted.add(part.slot)
        return Leaf(part.slot, part.path, convert)

    def _union(self, part: UnionPart, reader: types.AvroType, kind: pa.DataType) -> Maker:
        """A type that cannot be read is a problem of the records that have it, unless no type can."""
        makers: list[Maker] = []
        errors: list[UnreadableSchemaError] = []
        several = sum(not types.is_null(branch.type) for branch in part.branches) > 1
        for branch in part.branches:
            try:
                makers.append(self.maker(branch, reader, kind, by_name=several))
            except UnreadableSchemaError as exc:
                makers.append(Refused(kind, exc.path, exc.reason))
                errors.append(exc)
        if len(errors) == sum(not types.is_null(branch.type) for branch in part.branches):
            raise errors[0]
        self.wanted.add(part.slot)
        return Branches(part.slot, kind, makers)

    def _into_union(self, part: Part, reader: types.Union, kind: pa.DataType, *, by_name: bool) -> Maker:
        branch = _branch(part.type, reader, by_name=by_name)
        if branch is None:
            raise UnreadableSchemaError(part.path, f"{part.type} cannot be read as {reader}")
        names = {types.type_key(one) for one in reader.named}
        name = types.type_key(branch)
        if len(reader.named) > 1 and pa.types.is_struct(kind):
            _check_case_of_member(branch, name, kind, part.path)
        if len(reader.named) == 1 or not _has_members(kind, names, name):
            return self.maker(part, branch, kind)
        if len(names) < len(reader.named):
            raise UnreadableSchemaError(types.inside(part.path, name), "the union has two types of this name")
        at = kind.get_field_index(name)
        return Member(kind, name, self.maker(part, branch, kind.field(at).type) if at >= 0 else Nulls(pa.null()))

    def _record(self, part: RecordPart, reader: types.Record, kind: pa.StructType) -> Maker:
        written = part.type
        if not isinstance(written, types.Record):
            raise TypeError(f"{written} is no record")
        parts = dict(zip((field.name for field in written.fields), part.fields, strict=True))
        _check_case(kind, written, reader, part.path)
        names = FieldNames(written, reader)
        return Struct([(field, self._field(field, names, parts, reader, part.path)) for field in kind], part.path)

    def _field(self, field: pa.Field, names: FieldNames, parts: dict[str, Part], reader: types.Record, path: str) -> Maker:
        """Return the maker of a column: by the reader's field of its name, else by the writer's."""
        path, read_as = types.inside(path, field.name), reader.field_of(field.name)
        own = names.written_for(field.name, path)
        if own is not None:
            return self.maker(parts[own.name], own.type if read_as is None else read_as.type, field.type)
        if read_as is not None and read_as.default is not types.NO_DEFAULT:
            return Same(self._default_of(read_as.type, read_as.default, field.type, path))
        if not field.nullable:
            told = "required, and the records were written with a schema that has no such field; there is no default"
            raise UnreadableSchemaError(path, told)
        return Nulls(field.type)

    def _repeated(self, part: RepeatedPart, reader: types.Array | types.Map, kind: pa.DataType) -> Maker:
        if isinstance(reader, types.Array) != isinstance(part.type, types.Array):
            raise UnreadableSchemaError(part.path, f"{part.type} cannot be read as {reader}")
        is_map = isinstance(reader, types.Map)
        if not (pa.types.is_map(kind) and kind.key_type == pa.string() if is_map else pa.types.is_list(kind)):
            raise UnreadableSchemaError(part.path, f"{part.type} does not go into {column_name(kind)}")
        if part.least_bytes == 0:
            raise UnreadableSchemaError(part.path, f"items of the {part.type} have no bytes: any number of them fits")
        item = self.maker(part.item, reader.values if isinstance(reader, types.Map) else reader.items, _item_type(kind))
        self.wanted.add(part.slot)
        self.lists.add(part.slot)
        if part.key is None:
            return Lists(part.slot, kind, part.path, item)
        self.wanted.add(part.key.slot)
        return Lists(part.slot, kind, part.path, item, part.key.slot)


def _check_case(kind: pa.StructType, writer: types.Record, reader: types.Record, path: str) -> None:
    """Refuse a column whose value would be looked for by a name that the schemas have in another case.

    Where an alias finds the value, the reader says itself that the two names are one.

    Raises:
        UnreadableSchemaError: There is such a column.
    """
    written = [one.name for one in writer.fields]
    for name, other in names_in_other_case(kind.names, written, [one.name for one in reader.fields]).items():
        read_as = reader.field_of(name)
        if read_as is None or not any(alias in written for alias in read_as.aliases):
            raise _other_case(types.inside(path, name), other)


def _check_case_of_member(branch: types.AvroType, name: str, kind: pa.StructType, path: str) -> None:
    """Refuse a struct that has a type of a union in another case; a record may have a field of that name."""
    other = names_in_other_case(kind.names, [name])
    fields = {one.name for one in branch.fields} if isinstance(branch, types.Record) else frozenset[str]()
    found = next((one for one in other if one not in fields), None)
    if found is not None and kind.get_field_index(name) < 0:
        raise _other_case(types.inside(path, found), name)


def _other_case(path: str, name: str) -> UnreadableSchemaError:
    told = "names in Avro differ by upper and lower case: give it so in `schema:`, or as an alias of the newer field"
    return UnreadableSchemaError(path, f"the schema calls it {name}, and {told}")


def _has_members(kind: pa.DataType, names: set[str], name: str) -> bool:
    """Whether a column has a field for each type of a union; it may have more, of types that the union once had.

    Args:
        kind: Of the column.
        names: Of the union's types.
        name: Of the one that a value has.
    """
    return pa.types.is_struct(kind) and (kind.get_field_index(name) >= 0 or {field.name for field in kind} <= names)


def _item_type(kind: pa.DataType) -> pa.DataType:
    return kind.item_type if pa.types.is_map(kind) else kind.value_type


def _branch(writer: types.AvroType, reader: types.Union, *, by_name: bool) -> types.AvroType | None:
    """Return the type of a union that reads what a type wrote: its own, else the first one that it can be read as."""
    branches = reader.named
    if isinstance(writer, types.Named):
        alike: Sequence[types.AvroType] = [
            one for one in branches if isinstance(one, types.Named) and type(one) is type(writer)
        ]
        for one in alike:
            if isinstance(one, types.Named) and one.name == writer.name:
                return one
        found = next((one for one in alike if isinstance(one, types.Named) and one.reads(writer)), None)
        return found or (branches[0] if len(branches) == 1 and alike and not by_name else None)
    same = next((one for one in branches if type(one) is type(writer) and types.type_key(one) == types.type_key(writer)), None)
    if same is not None or not isinstance(writer, types.Primitive):
        return same
    wider = READ_AS.get(writer.kind, ())
    return next((one for one in branches if isinstance(one, types.Primitive) and one.kind in wider), None)
