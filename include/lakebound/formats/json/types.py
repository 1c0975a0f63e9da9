"""Types of JSON values as msgspec decodes them.

Where msgspec has no check as strict as the exact reader's, a value is taken as it is written, and judged with all others of its
column (``lakebound.formats.json.columns``).
"""

from __future__ import annotations

import datetime
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pyarrow as pa

_UNNAMED = re.compile(r'["\\\x00-\x1f]')
_SIMPLE: dict[pa.DataType, Any] = {
    pa.string(): str,
    pa.float64(): float,
    pa.float32(): float,
    pa.bool_(): bool,
    pa.binary(): bytes,
    pa.date32(): datetime.date,
    pa.timestamp("us", tz="UTC"): str | int,
    pa.timestamp("us"): str,
    **{
        kind: Annotated[int, msgspec.Meta(ge=-(1 << bits - 1), le=(1 << bits - 1) - 1)]
        for kind, bits in {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}.items()
    },
}


class MapKey(str):
    """A key of a map, equal to itself alone: so a map has a key twice where its text has it twice."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other


make_key = operator.call
"""The hook by which msgspec makes a ``MapKey``."""


def is_nameable(fields: Iterable[pa.Field]) -> bool:
    """Whether msgspec can decode all fields: it gives none a name that JSON writes with an escape."""
    return all(not _UNNAMED.search(field.name) and _is_nameable(field.type) for field in fields)


def object_decoder(schema: pa.Schema, *, unknown_refused: bool, any_text: bool = False) -> msgspec.json.Decoder[Any]:
    """Return the decoder of objects; what it makes has the fields' values as f0, f1, ...

    Args:
        schema: Of the objects.
        unknown_refused: Whether it refuses a field that the schema does not name.
        any_text: Whether text columns take any value, as it is written; it takes longer.
    """
    simple = {**_SIMPLE, pa.string(): msgspec.Raw} if any_text else _SIMPLE
    made = _Types(simple).struct(list(schema), unknown_refused=unknown_refused)
    return msgspec.json.Decoder(made, dec_hook=make_key)


def _is_nameable(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return is_nameable(kind.fields)
    if pa.types.is_list(kind):
        return _is_nameable(kind.value_type)
    return not pa.types.is_map(kind) or _is_nameable(kind.item_type)


@dataclass(frozen=True)
class _Types:
    """Python types, by those of values that have none inside."""

    simple: Mapping[pa.DataType, Any]

    def struct(self, fields: list[pa.Field], *, unknown_refused: bool = False, nested: bool = False) -> type[msgspec.Struct]:
        """Return a type with fields f0, f1, ... under the schema's names; inside of a value each may be null."""
        members: list[Any] = []
        for index, field in enumerate(fields):
            if field.nullable or nested:
                members.append((f"f{index}", self._or_null(field.type), None))
            else:
                members.append((f"f{index}", self._of(field.type)))
        names = {f"f{index}": field.name for index, field in enumerate(fields)}
        return msgspec.defstruct(
            "Value", members, rename=names, forbid_unknown_fields=unknown_refused, kw_only=True, gc=False, frozen=True
        )

    def _of(self, kind: pa.DataType) -> Any:
        if pa.types.is_decimal(kind):
            return msgspec.Raw
        if pa.types.is_list(kind):
            return list[self._or_null(kind.value_type)]  # type: ignore[misc]
        if pa.types.is_map(kind):
            return dict[MapKey, self._or_null(kind.item_type)]  # type: ignore[misc]
        if pa.types.is_struct(kind):
            return self.struct(kind.fields, nested=True)
        return self.simple[kind]

    def _or_null(self, kind: pa.DataType) -> Any:
        found = self._of(kind)
        return found if found is msgspec.Raw else found | None
