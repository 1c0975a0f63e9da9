"""Columns of Arrow in the columns of a table that has grown, against a reckoning on plain Python values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.tables.fitting import fit_column, fit_rows

_LEAVES = st.sampled_from([pa.int32(), pa.string(), pa.float32()])
_WIDER = {pa.int32(): pa.int64(), pa.float32(): pa.float64()}


def _structs(inside: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.lists(inside, min_size=1, max_size=3).map(
        lambda kinds: pa.struct([pa.field(f"f{number}", kind) for number, kind in enumerate(kinds)])
    )


def _nested(inside: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.one_of(
        _structs(inside),
        inside.map(lambda kind: pa.list_(pa.field("element", kind))),
        inside.map(lambda kind: pa.map_(pa.string(), kind)),
    )


KINDS = st.recursive(_LEAVES, _nested, max_leaves=6)


def grown(kind: pa.DataType) -> pa.DataType:
    """Return a type with a field more in each struct, and with wider numbers."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field("new", pa.int32()), *(pa.field(one.name, grown(one.type)) for one in kind)])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, grown(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", grown(kind.value_type)))
    return _WIDER.get(kind, kind)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_struct(kind):
        return st.none() | st.fixed_dictionaries({one.name: values(one.type) for one in kind})
    if pa.types.is_map(kind):
        return st.none() | st.dictionaries(st.sampled_from("abc"), values(kind.item_type), max_size=2).map(
            lambda found: list(found.items())
        )
    if pa.types.is_list(kind):
        return st.none() | st.lists(values(kind.value_type), max_size=3)
    if pa.types.is_integer(kind):
        return st.none() | st.integers(-5, 5)
    return st.none() | (st.sampled_from(["", "x"]) if pa.types.is_string(kind) else st.sampled_from([0.5, -1.0]))


def expected(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {"new": None, **{one.name: expected(value[one.name], one.type) for one in kind}}
    if pa.types.is_map(kind):
        return [(key, expected(inside, kind.item_type)) for key, inside in value]
    if pa.types.is_list(kind):
        return [expected(inside, kind.value_type) for inside in value]
    return value


@given(st.data())
def test_values_stay_and_what_was_added_is_null(data: st.DataObject) -> None:
    kind = data.draw(KINDS)
    made = data.draw(st.lists(values(kind), min_size=1, max_size=8))
    first = data.draw(st.integers(0, len(made) - 1))
    # A slice has its own offset, in each of the buffers.
    column = pa.chunked_array([pa.array(made, kind).slice(first)], kind)
    found = fit_column(column, pa.field("c", grown(kind)))
    found.validate(full=True)
    assert found.to_pylist() == [expected(one, kind) for one in made[first:]]


def test_a_column_that_the_rows_lack_is_null() -> None:
    rows = pa.table({"a": [1, 2]})
    found = fit_rows(rows, pa.schema([("b", pa.string()), ("a", pa.int64())]))
    assert found.to_pylist() == [{"b": None, "a": 1}, {"b": None, "a": 2}]


def test_a_value_is_never_narrowed() -> None:
    with pytest.raises(pa.ArrowInvalid):
        fit_column(pa.chunked_array([pa.array([2**40])]), pa.field("a", pa.int32()))
