"""A pipeline in small for recovery: two real tables of 30 records and a quarantine, with a Kafka of the test's own words."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.control.lease import read_lease
from lakebound.errors import LakeboundError
from lakebound.inspection.proof.collect import prove
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery import apply as applying
from lakebound.operations.recovery import facts as collecting
from lakebound.operations.recovery.apply import apply_recovery, plan_recovery
from lakebound.operations.recovery.plan import RepairAction
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table
from tests.support.tables.local_tables import PIPELINE, TOPIC, TOPIC_ID, lander, make_table

DELTA, ICEBERG = TableSpec(format="delta", name="shop.orders"), TableSpec(format="iceberg", name="shop.orders")
NEW_ID = "topic-id-2"


@dataclass
class FakeKafka:
    """What the broker is to answer."""

    topic_id: str = TOPIC_ID
    earliest: int = 0
    latest: int = 100
    error: LakeboundError | None = None
    asked: list[float] = field(default_factory=list)

    def topics(self, names: Iterable[str], **_: Any) -> dict[str, TopicFacts]:
        """Answer."""
        self.asked.append(time.monotonic())
        if self.error is not None:
            raise self.error
        return {name: TopicFacts(self.topic_id, {0: self.earliest}, {0: self.latest}) for name in names}


@dataclass
class Case:
    """A pipeline with two tables and a quarantine, of which [0, 30) is landed in three commits."""

    spec: PipelineSpec
    settings: Settings
    kafka: FakeKafka

    @property
    def at(self) -> Places:
        """Its places."""
        return places_of(self.settings, "default")

    @property
    def control(self) -> ControlFolder:
        """Its folder of state."""
        return ControlFolder(self.settings.home, PIPELINE)

    def plan(self, action: RepairAction) -> str:
        """Return the hash of the plan."""
        return plan_recovery(self.spec, self.settings, action).hash

    def apply(self, action: RepairAction, approved: str) -> applying.Applied:
        """Apply a plan."""
        return apply_recovery(self.spec, self.settings, action, approved, by="ada")

    def land(self, table: TableSpec, start: int, end: int) -> None:
        """Land an interval as the next application does."""
        app = lander(table, self.at, epoch=99)
        app.land(start, end)

    def assert_proved(self) -> None:
        """Check that the proof by entries holds as the tables are now."""
        proof = prove(self.spec, self.at, facts=self.kafka)  # type: ignore[arg-type]
        assert proof.ok, [table.problems for table in proof.tables]

    def kinds(self, table: TableSpec) -> list[str]:
        """Return the kinds of the table's entries, newest first."""
        return [found.entry.kind for found in open_table(table, self.at).entries()]


@pytest.fixture(name="case")
def case_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    """The pipeline, with the Kafka in the place of the broker; its lease is released at the end."""
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path))
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(tmp_path / "lake"))
    kafka = FakeKafka()
    monkeypatch.setattr(collecting, "KafkaFacts", lambda *_, **__: kafka)
    spec = PipelineSpec.model_validate(
        {
            "pipeline": PIPELINE,
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [DELTA, ICEBERG],
            "limits": {"lease_ttl_seconds": 2},
        }
    )
    made = Case(spec, load_settings(), kafka)
    for table in (*spec.tables, spec.quarantine_table):
        make_table(table, made.at)
    for table in spec.tables:
        app = lander(table, made.at)
        app.open()
        for start in (0, 10, 20):
            app.land(start, start + 10)
    yield made
    assert read_lease(made.control) is None or read_lease(made.control).released  # type: ignore[union-attr]
