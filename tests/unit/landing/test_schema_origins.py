"""What status and page say of a registry: versions in use, what a column comes from, and what is not followed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lakebound.control.folder import ControlFolder, write_text
from lakebound.control.schemas_in_use import (
    SchemasInUse,
    SchemasRecord,
    read_schemas_in_use,
    told_schemas,
    write_schemas_in_use,
)
from lakebound.formats.schemas import SchemaText
from lakebound.formats.versions import Version
from lakebound.landing.schema_origins import schemas_in_use
from lakebound.spec.value import SchemaValueSpec


def avro(**types: Any) -> SchemaText:
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return SchemaText("avro", json.dumps({"type": "record", "name": "Order", "fields": fields}))


VERSIONS = [
    Version(1, (11,), avro(id="long", town="string")),
    Version(2, (12,), avro(id="long", city="string")),
    Version(3, (13,), avro(id="long", city="string", note="string")),
]


def found(versions: list[Version] = VERSIONS, refused: dict[int | str, str] | None = None, **value: Any) -> SchemasInUse:
    source = SchemaValueSpec.model_validate({"format": "avro", "registry": "shop", **value})
    return schemas_in_use(source, {"orders-value": versions}, {"orders-value": refused or {}}, {"orders-value": "BACKWARD"})


def test_each_column_says_since_which_version_and_until_when() -> None:
    columns = {one.name: (one.type, one.since, one.until) for one in found().columns}
    assert columns == {
        "id": ("BIGINT", 1, None),
        "city": ("STRING", 2, None),
        "note": ("STRING", 3, None),
        "town": ("STRING", 1, 1),
    }
    (line,) = told_schemas([found()])
    assert "version 3 (id 13); 3 versions in use (ids 13, 12, 11); compatibility BACKWARD; version 3 added note" in line


def test_a_newest_version_that_is_not_followed_is_said_with_the_reason() -> None:
    shown = found(refused={13: "city: a table cannot"})
    assert [one.name for one in shown.columns] == ["id", "city", "town"]
    (line,) = told_schemas([shown])
    assert "version 2 (id 12)" in line and "The newest, version 3 (id 13), is not followed: city: a table cannot" in line


def test_a_version_that_cannot_be_read_hides_no_other() -> None:
    broken = [*VERSIONS, Version(4, (14,), None, "it has rules"), Version(5, (15,), SchemaText("avro", "{"))]
    shown = found(broken)
    assert [bool(one.problem) for one in shown.subjects[0].versions] == [True, True, False, False, False]
    assert len(shown.columns) == 4


def test_fields_that_the_yaml_leaves_out_are_named() -> None:
    shown = found(schema="id BIGINT, city STRING")
    assert [one.name for one in shown.columns] == ["id", "city"] and shown.left_out == ("note",)
    assert [*told_schemas([shown])][1] == "the newest schema has fields that value.schema does not name: note"


def test_the_record_is_read_as_it_was_written_and_a_damaged_one_is_none(tmp_path: Any) -> None:
    control = ControlFolder(tmp_path, "orders")
    assert read_schemas_in_use(control) is None
    record = SchemasRecord(at=1.0, parts=(found(),))
    write_schemas_in_use(control, record)
    assert read_schemas_in_use(control) == record
    write_text(control.schemas_in_use, '{"at": "soon"}')
    assert read_schemas_in_use(control) is None


@pytest.mark.parametrize("count", [0, 60, 600])
def test_very_many_versions_and_columns_are_bounded(count: int) -> None:
    many = [Version(n + 1, (n,), avro(**{f"c{n}_{k}": "long" for k in range(10)})) for n in range(count)]
    shown = found(many)
    assert SchemasInUse.model_validate(shown.model_dump(mode="json")) == shown
