"""Schemas in files of the project are read with all that they import, and nothing outside of their folder is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lakebound.formats.kinds import schema_reader
from lakebound.formats.schemas import SchemaText
from lakebound.landing.schema_files import SchemaFileError, read_schema_files
from lakebound.settings import load_settings
from lakebound.spec.load import load_file

BODY = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "kafka:9092"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "sales.orders"}],
}


def read(folder: Path, files: dict[str, str], kind: str = "protobuf", name: str = "order.proto") -> SchemaText:
    for path, text in files.items():
        file = folder / "schemas" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (folder / "orders.yaml").write_text(yaml.safe_dump({**BODY, "value": {"format": kind, "schema_file": name}}))
    settings = replace(load_settings({}), pipelines=folder / "pipelines")
    return read_schema_files(load_file(folder / "orders.yaml"), settings)["value"]


def test_imports_are_found_as_the_language_has_them(tmp_path: Path) -> None:
    order = """
        // import "none.proto";
        syntax = "proto3"; /* import "none.proto"; */ import 'shop/line.proto'; import public "shop" "/place.proto";
        import "google/protobuf/timestamp.proto"; import "google/type/money.proto";
        message Order { shop.Line line = 1; shop.Place place = 2; google.type.Money sum = 3; google.protobuf.Timestamp at = 4; }
    """
    line = 'syntax = "proto3"; package shop; import "shop/place.proto"; message Line { Place from = 1; }'
    place = 'syntax = "proto3"; package shop; message Place { string city = 1; }'
    found = read(tmp_path, {"order.proto": order, "shop/line.proto": line, "shop/place.proto": place})
    assert [(one.name, [each.name for each in one.schema.references]) for one in found.references] == [
        ("shop/line.proto", ["shop/place.proto"]),
        ("shop/place.proto", []),
    ]
    assert schema_reader("protobuf").columns_of(found, None).names == ["line", "place", "sum", "at"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('import "gone.proto";', "gone.proto"),
        ('import "../secret.proto";', "without .."),
        ('import "/etc/passwd";', "must be a path in the folder"),
        ('import "order.proto";', "imports itself"),
        ("message Order {", r"order\.proto: line 1: a name is missing; the text ends here"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(SchemaFileError, match=told):
        read(tmp_path, {"order.proto": text})


def test_other_formats_import_no_files(tmp_path: Path) -> None:
    avro = '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}'
    assert read(tmp_path, {"order.avsc": avro}, "avro", "order.avsc") == SchemaText("avro", avro)


def test_values_and_keys_may_have_a_file_each_and_errors_name_the_part(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "id.avsc").write_text('"long"')
    key = {"format": "avro", "schema_file": "id.avsc"}
    body = {**BODY, "value": {"format": "avro", "registry": "shop"}, "key": key}
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(body))
    settings = replace(load_settings({}), pipelines=tmp_path / "pipelines")
    assert read_schema_files(load_file(tmp_path / "orders.yaml"), settings) == {"key": SchemaText("avro", '"long"')}
    (tmp_path / "schemas" / "id.avsc").unlink()
    with pytest.raises(SchemaFileError, match=r"key\.schema_file: id\.avsc") as caught:
        read_schema_files(load_file(tmp_path / "orders.yaml"), settings)
    assert caught.value.part == "key"
