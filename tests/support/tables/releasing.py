"""A release of quarantined records on real tables, with a stand-in for what Spark does. No JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

import lakebound_spark.backfill.rows_decide as releasing
from lakebound.control.folder import ControlFolder
from lakebound.inspection.proof.offset_arrays import Arrays, size
from lakebound.landing.table_settling import ColumnsMovedError
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.release.orders import ReleaseOrders
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import Table
from lakebound_spark.backfill import job
from lakebound_spark.backfill.quarantined import Released
from lakebound_spark.backfill.rows_decide import release
from lakebound_spark.batch.row_writer import Written
from tests.support.tables.guests import without_waits
from tests.support.tables.local_tables import landed_offsets
from tests.support.tables.quarantined import Quarantined, rows_of

BAD = [(offset, "does_not_fit", b"%d" % offset) for offset in (3, 5, 6)]


@dataclass
class Scene:
    """The pipeline, and what happens while a piece is decoded."""

    world: Quarantined
    meanwhile: Callable[[], None] = lambda: None
    decoded: int = 0
    columns_moved: bool = False
    most_records: int = 1000
    checks: list[int] = field(default_factory=list)

    def release(self, *, is_trial: bool = False) -> Any:
        spec = self.world.spec
        spec = spec.model_copy(update={"limits": spec.limits.model_copy(update={"max_records_per_batch": self.most_records})})
        body = {"spec": spec, "places": self.world.at, "app_id": "release-1", "freshness": "available_now"}
        return release(ReleaseOrders(**body, is_trial=is_trial))

    @property
    def control(self) -> ControlFolder:
        return ControlFolder(self.world.at.home, self.world.spec.pipeline)

    def landed(self) -> list[list[int]]:
        return [landed_offsets(table) for table in self.world.targets]

    def take_over(self) -> None:
        """Open every table as a later application does."""
        for table in self.world.targets:
            entry = Entry(kind="open", pipeline="orders", epoch=2, commit=new_commit_id())
            commit_entry(table, table.read_ledger(), [], entry, own_epoch=2, check_lease=lambda: None, attempts=1)


class FakeBatch:
    """Everything fits, and is one row."""

    scene: Scene

    left_out: Mapping[str, str] = {}

    def __init__(self, *_: object) -> None:
        """Needs no session."""

    def decode(self, wanted: Arrays, tables: list[Table], *, write: bool) -> Released:
        self.scene.decoded += 1
        rows = rows_of([int(offset) for array in wanted.values() for offset in array])
        files = {table.spec.id: write_data_files(rows, table.layout(), new_commit_id()) for table in tables if write}
        if self.scene.decoded == 1:
            self.scene.meanwhile()
        number = size(wanted)
        return Released(number, wanted, {"does_not_fit": Counter(fit=number)}, Written(files, number, number), "driver")

    def check_columns(self) -> None:
        self.scene.checks.append(self.scene.decoded)
        if self.scene.columns_moved:
            raise ColumnsMovedError("orders")

    def reference_versions(self) -> dict[str, str]:
        return {}

    def forget(self) -> None:
        """Keeps nothing."""


@pytest.fixture(name="scene")
def scene_fixture(at: Places, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A pipeline of which some records are in quarantine, and all of them fit now."""
    return make_scene(Quarantined(at, BAD, end=100), monkeypatch)


def make_scene(world: Quarantined, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return a pipeline whose releases go by the stand-in."""
    made = Scene(world)
    monkeypatch.setattr(FakeBatch, "scene", made, raising=False)
    monkeypatch.setattr(releasing, "QuarantinedRecords", FakeBatch)
    monkeypatch.setattr(job, "make_session", lambda _: type("Session", (), {"stop": lambda self: None})())
    without_waits(monkeypatch)
    return made
