"""A pipeline is put together more than once in one application: after a change of its schema, and beside another pipeline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.oracle import read_delta
from tests.support.tables.local_tables import TOPIC, TOPIC_ID, offsets, places
from tests.support.tables.value_lanes import Sent

import transforms
from lakebound.landing.table_settling import settle_tables
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from lakebound_spark.batch.record_format import value_fields
from lakebound_spark.batch.records import Records
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Target, Writer
from lakebound_spark.landing.assembly import Assembly
from lakebound_spark.landing.lander import BatchLander, make_lander
from lakebound_spark.landing.parts import plan_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("as_applications_write")]

IDS = {TOPIC: TOPIC_ID}
TRANSFORM = """
calls = []

def passed_on(records):
    calls.append(records.columns)
    return records
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The columns with which the transform of these pipelines was called."""
    (tmp_path / "a_transform_of_assemblies.py").write_text(TRANSFORM)
    monkeypatch.setattr(transforms, "__path__", [*transforms.__path__, str(tmp_path)])
    from transforms import a_transform_of_assemblies as module  # type: ignore[attr-defined]

    yield module.calls


class Application:
    """What an application has of one pipeline, from one assembly to the next."""

    def __init__(self, session: SparkSession, at: Places, name: str, **changes: Any) -> None:
        self.session, self.at, self.name, self.changes = session, at, name, changes
        self.writer = Writer(name, 1, lambda: None, attempts=3, quarantine=f"delta:{name}_quarantine")
        self.targets: list[Target] = []
        self.lander: BatchLander | None = None
        self.landed = 0

    def assemble(self, schema: str) -> Assembly:
        """Settle the tables for a schema, and put the pipeline together for it."""
        body = {
            "pipeline": self.name,
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "json", "schema": schema},
            "freshness": "1s",
            "schema_evolution": "add_columns",
            "tables": [{"format": "delta", "name": f"{self.name}.rows"}],
            **self.changes,
        }
        spec = PipelineSpec.model_validate(body)
        planned = plan_pipeline(self.session, spec)
        schemas = planned.table_schemas() | {spec.quarantine_table.id: QUARANTINE_SCHEMA}
        settled = settle_tables(spec, self.at, schemas, value_fields(spec), own_epoch=1, check_lease=lambda: None)
        self.targets = [self.opened(one, schemas) for one in (*spec.tables, spec.quarantine_table)]
        own = self.targets[:-1]
        layouts = [target.table.layout() for target in own]
        assembly = Assembly(planned, IDS, layouts, settled.unhoused, settled.left_out)
        if self.lander is not None:
            self.lander.close()
        self.lander = make_lander(assembly, own, self.targets[-1], self.writer, self.at)
        return assembly

    def opened(self, one: TableSpec, schemas: Any) -> Target:
        table = open_table(one, self.at)
        if not table.exists():
            table.create(schemas[one.id], Entry(kind="genesis", pipeline=self.name, epoch=1, commit=new_commit_id()))
        return Target(table, table.read_ledger())

    def land(self, *values: dict[str, Any]) -> None:
        """Land records, by whichever assembly there is now."""
        assert self.lander is not None
        first, self.landed = self.landed, self.landed + len(values)
        sent = Sent(first, [json.dumps(value).encode() for value in values], [1_767_225_600_000] * len(values))
        wanted = offsets(first, self.landed)
        self.lander.land(Records(self.session, wanted, lambda: sent.frame(self.session)), first, wanted, lambda: None)

    def rows(self) -> list[dict[str, Any]]:
        """What a reader of the table sees, in the order of the records."""
        [table, _] = self.targets
        found = read_delta(self.at.delta_path(table.table.spec)).to_pylist()
        ordered = sorted(found, key=lambda row: int(row["_kafka"]["offset"]))
        return [{name: value for name, value in row.items() if name != "_kafka"} for row in ordered]

    def bad(self) -> list[int]:
        """Offsets of the records in quarantine."""
        found = read_delta(self.at.delta_path(self.targets[-1].table.spec)).to_pylist()
        return sorted(row["_kafka"]["offset"] for row in found)


def test_a_pipeline_is_put_together_again_when_its_schema_changes(session: SparkSession, tmp_path: Path) -> None:
    one = Application(session, places(tmp_path), "orders")
    before = one.assemble("id BIGINT NOT NULL")
    one.land({"id": 1, "note": "a"}, {"note": "b"})
    after = one.assemble("id BIGINT NOT NULL, note STRING")
    one.land({"id": 3, "note": "c"}, {"note": "d"}, {"id": 5})
    assert one.rows() == [{"id": 1, "note": None}, {"id": 3, "note": "c"}, {"id": 5, "note": None}]
    assert one.bad() == [1, 3]
    # The one before is what it was: a batch in flight would have ended by one schema.
    assert [field.name for field in before.planned.output] == ["id", "_kafka"]
    assert [field.name for field in after.planned.output] == ["id", "note", "_kafka"]
    assert before.decoder is not after.decoder and before.check is not after.check


def test_two_pipelines_in_one_application_share_nothing_that_has_a_state(
    session: SparkSession, tmp_path: Path, calls: list[list[str]]
) -> None:
    at, transform = places(tmp_path), "transforms.a_transform_of_assemblies.passed_on"
    one, other = (Application(session, at, name, transform=transform) for name in ("orders", "returns"))
    parts = (
        one.assemble("id BIGINT NOT NULL"),
        other.assemble("code STRING NOT NULL"),
        one.assemble("id BIGINT NOT NULL, n INT"),
    )
    assert parts[0].planned.process == parts[1].planned.process == parts[2].planned.process
    assert len({id(part.raising) for part in parts}) == 3
    for number in range(4):
        calls.clear()
        one.land({"id": number, "n": number})
        other.land({"code": str(number)}, {"id": number})
    # Once in each batch, when no kind of plan is new any more: what an assembly has planned is not planned again.
    assert calls == [["id", "n", "_kafka"], ["code", "_kafka"]]
    assert one.rows() == [{"id": number, "n": number} for number in range(4)] and not one.bad()
    assert other.rows() == [{"code": str(number)} for number in range(4)] and other.bad() == [1, 3, 5, 7]
