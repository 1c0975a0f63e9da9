"""A check judges the schemas of a registry as a start does: what the tables cannot follow is told, and is no mistake."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from tests.support.registry.said_answers import HANG_UP, Said, Seen, answering_requests
from tests.support.tables.local_tables import places

from lakebound.landing.run_spec import RunSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.registry import RegistrySpec
from lakebound.spec.value import SchemaValueSpec
from lakebound_spark.check import plan

SPEC = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "nowhere:9092"},
    "value": {"format": "avro", "registry": "shop"},
    "freshness": "1s",
    "tables": [{"format": "delta", "name": "shop.orders"}],
}
TABLE = {"id": pa.int64(), "city": pa.string()}


def order(**fields: str) -> str:
    made = [{"name": name, "type": ["null", kind], "default": None} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


def answer(request: Seen, versions: list[str]) -> Said:
    """Answer as a registry whose user may not read the compatibility mode."""
    path = urlsplit(request.path).path
    number = path.rpartition("/")[2]
    if not versions:
        return HANG_UP
    if path.startswith("/config"):
        return Said(b'{"error_code": 40301, "message": "User is denied"}', 403)
    if number.isdigit():
        made = {"subject": "orders-value", "version": int(number), "id": 10 + int(number)}
        return Said(json.dumps({**made, "schema": versions[int(number) - 1]}).encode())
    return Said(json.dumps([*range(1, len(versions) + 1)]).encode())


def columns_of(spec: PipelineSpec) -> Mapping[str, pa.DataType]:
    assert isinstance(spec.value, SchemaValueSpec)
    return {one.name: one.type for one in spec.value.read.columns}


@pytest.mark.parametrize(
    ("versions", "columns", "told"),
    [
        ([order(id="long")], {"id"}, "version 1 (id 11)"),
        ([order(id="long"), order(id="string")], {"id"}, "The newest, version 2 (id 12), is not followed"),
        ([order(id="long"), order(id="string"), order(id="long", x="int")], {"id", "x"}, "version 3 (id 13)"),
        ([order(id="string")], {"id"}, "version 1 (id 11)"),  # what is wrong with it is told of the table
        ([], None, "no answer from the schema registry"),
    ],
)
def test_versions_are_followed_as_by_a_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, versions: list[str], columns: set[str] | None, told: str
) -> None:
    def compare(spec: PipelineSpec, *_: Any) -> SimpleNamespace:
        wrong = [name for name, kind in columns_of(spec).items() if TABLE.get(name, kind) != kind]
        return SimpleNamespace(differences={"delta:shop.orders": wrong} if wrong else {})

    monkeypatch.setattr(plan, "compare_tables", compare)
    monkeypatch.setattr(plan, "plan_pipeline", lambda *_: SimpleNamespace(table_schemas=dict))
    monkeypatch.setattr(plan, "open_book", lambda *_: None)
    monkeypatch.setattr(plan, "value_fields", lambda _: ())
    monkeypatch.setattr(plan, "_schema_problems", lambda _: [])
    found = plan.PlannedCheck()
    with answering_requests(lambda request: answer(request, versions)) as server:
        spec = PipelineSpec.model_validate(SPEC)
        registries = {"shop": RegistrySpec.model_validate({"url": server.url})}
        at = places(tmp_path).read_only()
        run = RunSpec(spec=spec, places=at, app_id="check", freshness=spec.freshness, registries=registries)
        followed = plan._with_schemas(found, cast(Any, None), run)
    assert (followed is None) == (columns is None)
    if followed is None:
        assert told in found.problems[0].what
        return
    assert {*columns_of(followed)} == columns and not found.problems
    assert told in found.schemas[0] and "compatibility not known" in found.schemas[0]
