"""``lakebound check`` says what files alone say of a pipeline's schemas, also with ``--static``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.streams.command_line import ORDERS, answer, settings

from lakebound.cli import plan_check
from lakebound.settings import Settings

__all__ = ["settings"]

RECORD = '{"type": "record", "name": "Order", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}'


def checked(settings: Settings, *options: str, code: int = 1, **parts: Any) -> list[str]:
    """Return what check says of a pipeline with these parts."""
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump({**ORDERS, **parts}))
    problems: list[str] = answer("check", "orders", *options, code=code)["problems"]
    return problems


@pytest.fixture
def schemas(settings: Settings) -> Path:
    """A folder with one schema."""
    folder = settings.pipelines.parent / "schemas"
    folder.mkdir()
    (folder / "order.avsc").write_text(RECORD)
    return folder


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"format": "avro", "registry": "compny"}, "value.registry: there is no schema registry 'compny' in"),
    ({"format": "avro", "schema_file": "gone.avsc"}, "value.schema_file: gone.avsc: "),
    ({"format": "protobuf", "schema_file": "order.avsc"}, "value.schema_file: order.avsc: line 1"),
    ({"format": "avro", "schema_file": "order.avsc", "record": "shop.Nothing"}, "value: its avro schema cannot be landed: "),
]


@pytest.mark.parametrize(("value", "said"), WRONG)
@pytest.mark.usefixtures("schemas")
def test_a_mistake_that_needs_only_files_is_told_with_and_without_spark(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, value: dict[str, Any], said: str
) -> None:
    monkeypatch.setattr(plan_check, "check_plans", lambda *_: pytest.fail("such a pipeline is not planned"))
    (static,) = checked(settings, "--static", value=value)
    assert said in static and "orders.yaml:" in static
    assert checked(settings, value=value) == [static]


@pytest.mark.usefixtures("schemas")
def test_key_and_value_are_looked_at_each(settings: Settings) -> None:
    key = {"format": "avro", "schema_file": "gone.avsc", "as": "k"}
    found = checked(settings, "--static", value={"format": "avro", "registry": "compny"}, key=key)
    assert len(found) == 2
    assert any("value.registry: " in line for line in found) and any("key.schema_file: gone.avsc" in line for line in found)


@pytest.mark.usefixtures("schemas")
def test_columns_of_one_name_are_told(settings: Settings) -> None:
    key = {"format": "avro", "schema_file": "order.avsc", "columns": ["id"]}
    (found,) = checked(settings, "--static", value={"format": "avro", "schema_file": "order.avsc"}, key=key)
    assert "orders.yaml:" in found and "id" in found


@pytest.mark.usefixtures("schemas")
def test_what_is_right_is_valid(settings: Settings) -> None:
    value = {"format": "avro", "schema_file": "order.avsc", "record": "shop.Order"}
    assert checked(settings, "--static", value=value, code=0) == []


@pytest.mark.parametrize("fields", [("id",), ("id", "at")])
def test_columns_that_the_pipeline_names_are_left_to_spark(settings: Settings, schemas: Path, fields: tuple[str, ...]) -> None:
    """Also where the file has a field that no column can hold, and that the pipeline leaves out."""
    kinds = {"id": "long", "at": {"type": "long", "logicalType": "timestamp-nanos"}}
    body = {"type": "record", "name": "Order", "fields": [{"name": name, "type": kinds[name]} for name in fields]}
    (schemas / "named.avsc").write_text(json.dumps(body))
    value = {"format": "avro", "schema_file": "named.avsc", "schema": "id BIGINT"}
    assert checked(settings, "--static", value=value, code=0) == []


def test_a_mistake_in_registries_yaml_is_told_of_a_pipeline_that_names_one(settings: Settings) -> None:
    file = settings.pipelines.parent / "registries.yaml"
    file.write_text(yaml.safe_dump({"registries": {"company": {"url": "registry"}}}))
    mistake = f"{file}:3: registries.company.url: must be an address such as https://registry.example.com:8081"
    found = checked(settings, "--static", value={"format": "avro", "registry": "company"})
    assert len(found) == 2 and mistake in found
    assert any("orders.yaml:" in line and "value.registry: " in line for line in found)
    assert checked(settings, "--static", code=0) == [], "a pipeline that names none does not need the file"


def test_a_secret_that_may_not_be_read_is_told_without_asking_the_registry(settings: Settings) -> None:
    file = settings.pipelines.parent / "registries.yaml"
    company = {"url": "http://127.0.0.1:1", "token": {"env": "HOME"}}
    file.write_text(yaml.safe_dump({"registries": {"company": company}}))
    found = checked(settings, "--static", value={"format": "avro", "registry": "company"})
    assert len(found) == 2 and "registries.company.token: this environment variable may not be read as a secret" in found[0]
