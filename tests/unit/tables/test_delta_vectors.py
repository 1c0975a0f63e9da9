"""How a Delta log names the files of deletion vectors, and what a table asks of its writers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakebound.errors import TableFeatureError
from lakebound.tables.delta.features import check_known, check_may, check_restorable, shape_of
from lakebound.tables.delta.vectors import vector_file


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        (("u", "vBn[lx{q8@P<9BNH/isA"), "deletion_vector_61d16c75-6994-46b7-a15b-8b538852e50e.bin"),
        (("u", "ab^-aqEH.-t@S}K{vb[*k^"), "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"),
        (("p", "s3://mytable/deletion_vector_d2c639aa.bin"), "s3://mytable/deletion_vector_d2c639aa.bin"),
        (("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"), None),
    ],
)
def test_the_examples_of_the_protocol(vector: tuple[str, str], expected: str | None) -> None:
    kind, where = vector
    assert vector_file({"storageType": kind, "pathOrInlineDv": where}) == expected


def test_another_way_to_store_them_is_not_guessed() -> None:
    with pytest.raises(ValueError, match="'x'"):
        vector_file({"storageType": "x", "pathOrInlineDv": "a"})


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": list(fields)})


def column(name: str, kind: Any = "string", *, nullable: bool = True, **about: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": nullable, "metadata": about}


def test_what_is_inside_of_a_column_counts_and_not_null_in_a_list_does_not() -> None:
    inner = {"type": "struct", "fields": [column("sku", nullable=False)]}
    in_list = column("items", {"type": "array", "elementType": inner, "containsNull": False})
    assert not shape_of([], {}, [], schema(in_list), None).in_effect
    found = shape_of([], {}, [], schema(column("one", inner), column("id", "long", nullable=False)), None)
    assert (found.in_effect, found.required) == ({"invariants": "column one.sku is NOT NULL"}, ("id",))
    default = {
        "type": "map",
        "keyType": "string",
        "valueType": {"type": "struct", "fields": [column("x", CURRENT_DEFAULT="1")]},
    }
    assert [*shape_of([], {}, [], schema(column("m", default)), None).in_effect] == ["allowColumnDefaults"]


def test_an_unknown_feature_is_named_first() -> None:
    shape = shape_of(["columnMapping", "zoom"], {"delta.columnMapping.mode": "name"}, [], schema(), None)
    with pytest.raises(TableFeatureError, match=r"uses zoom, .* it is not known here") as caught:
        check_may("delta:t", shape, "append")
    assert (caught.value.feature, caught.value.runbook) == ("zoom", "table-feature")
    with pytest.raises(TableFeatureError, match="uses zoom"):
        check_known("delta:t", shape.features)


def test_a_table_is_put_back_to_what_it_was_before_a_constraint() -> None:
    before = shape_of([], {}, [], schema(), None)
    now = shape_of([], {"delta.constraints.c": "id > 0"}, [], schema(), None)
    check_restorable("delta:t", now, before)
    with pytest.raises(TableFeatureError, match=r"checkConstraints \(c: id > 0\)"):
        check_restorable("delta:t", before, now)
