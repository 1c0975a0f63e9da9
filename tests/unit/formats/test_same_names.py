"""Names that Spark takes for one name, and others. The expected ones are Java's (``String.equalsIgnoreCase``)."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from lakebound.formats.composed import ComposedFormat
from lakebound.formats.headers import HeaderColumn, HeadersFormat
from lakebound.formats.json_schema.schema_reader import columns_of
from lakebound.formats.kinds import JsonFormat
from lakebound.formats.same_names import as_compared
from lakebound.formats.schemas import SchemaText, UnreadableSchemaError
from lakebound.spec.ddl import ddl_mistakes
from lakebound.tables.schemas import unusable_names

SAME = [
    ("id", "ID"),
    ("größe", "GRÖßE"),
    ("σ", "ς"),
    ("ſ", "S"),
    ("\u212a", "k"),
    ("ı", "i"),
    ("İ", "I"),
    ("ẞ", "ß"),
    ("µ", "μ"),
]
APART = [("straße", "strasse"), ("ŉ", "ʼn"), ("ﬁ", "fi"), ("e\u0301", "é"), ("a", "а")]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_names_that_differ_by_case_are_one(one: str, other: str) -> None:
    assert as_compared(one) == as_compared(other)
    assert [*unusable_names("delta", [one, other])] == [other]


@pytest.mark.parametrize(("one", "other"), APART)
def test_other_names_are_two_columns(one: str, other: str) -> None:
    assert as_compared(one) != as_compared(other)
    assert unusable_names("delta", [one, other]) == {}
    assert not ddl_mistakes(f"`{one}` STRING, `{other}` STRING")


def of_json_schema(*names: str) -> SchemaText:
    return SchemaText("json_schema", json.dumps({"type": "object", "properties": {name: {"type": "string"} for name in names}}))


def beside_a_header(column: str, header: str) -> ComposedFormat:
    value = JsonFormat(pa.schema([(column, pa.string())]))
    return ComposedFormat(value, None, HeadersFormat((HeaderColumn(header, header),)))


@pytest.mark.parametrize(("one", "other"), SAME)
def test_no_format_gives_two_columns_of_one_name(one: str, other: str) -> None:
    with pytest.raises(UnreadableSchemaError, match="upper and lower case only"):
        columns_of(of_json_schema(one, other), None)
    with pytest.raises(ValueError, match="two columns"):
        beside_a_header(one, other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_every_format_gives_two_columns_of_two_names(one: str, other: str) -> None:
    assert columns_of(of_json_schema(one, other), None).names == [one, other]
    assert beside_a_header(one, other).columns.names == [one, other]
