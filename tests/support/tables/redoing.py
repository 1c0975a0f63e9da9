"""A pipeline in small for redos: real tables of both formats, the redo's own job, and a stand-in for what Spark does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakebound_spark.backfill.coverage_decides as replaying
from lakebound import faults
from lakebound.control.folder import ControlFolder
from lakebound.control.replay_result import ReplayResult
from lakebound.ledger.entry import Offsets, common, intervals_of
from lakebound.operations.redo.orders import RedoOrders
from lakebound.operations.replay.chunks import chunks
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table
from lakebound_spark.backfill import job, planning
from lakebound_spark.backfill.rows_replaced import redo
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer
from lakebound_spark.landing.trimming import group_by_missing
from tests.support.tables import local_tables
from tests.support.tables.guests import FakeKafka, FakePlan, FakeSession, without_waits
from tests.support.tables.local_tables import SCHEMA, TOPIC, genesis, make_table, places

LANDED = 400


class Scene:
    """A Delta and an Iceberg table with 400 rows; the transform of today gives other rows, and none of every seventh record."""

    def __init__(self, spec: PipelineSpec, at: Places) -> None:
        self.spec, self.at = spec, at
        self.reads: list[tuple[int, int]] = []
        self.meanwhile: dict[int, Callable[[], object]] = {}
        self.city, self.parts = "redone", 1

    @property
    def control(self) -> ControlFolder:
        """The pipeline's folder of state."""
        return ControlFolder(self.at.home, self.spec.pipeline)

    def tables(self) -> list[Table]:
        """Open the tables anew."""
        return [open_table(table, self.at) for table in self.spec.tables]

    def run(self, start: int, end: int, plan: str = "plan-1", held_since: float | None = None) -> ReplayResult:
        """Redo a range as its application does."""
        wanted = local_tables.offsets(start, end)
        replaces = {one.spec.id: common(wanted, one.read_ledger().coverage) for one in self.tables()}
        body = {"spec": self.spec, "places": self.at, "app_id": "redo-1", "freshness": "available_now"}
        return redo(RedoOrders(**body, wanted=wanted, replaces=replaces, plan=plan, held_since=held_since))

    def land(self, start: int, end: int) -> None:
        """Land rows in all tables as the stream does."""
        for table in self.tables():
            local_tables.Lander(table, table.read_ledger()).land(start, end)

    def shown(self) -> list[dict[int, str]]:
        """Return the city of each row of each table, by its offset; each once."""
        found = []
        for table in self.tables():
            table.read_ledger()
            parts = [part for file in table.live_data_files() for part in table.rows_of(file)]  # type: ignore[attr-defined]
            rows = pa.concat_tables([part.select(["id", "city"]) for part in parts]).to_pylist()
            assert len(rows) == len({row["id"] for row in rows})
            found.append({row["id"]: row["city"] for row in rows})
        return found

    def expected(self, start: int, end: int, landed: int = LANDED, city: str = "redone") -> list[dict[int, str]]:
        """Return what plain arithmetic says that the tables hold."""
        before = {at: f"city {at % 3}" for at in range(landed) if not start <= at < end}
        return [before | {at: city for at in range(start, end) if at % 7}] * 2


class FakeLander:
    """Gives one row per offset, and none of every seventh; its commits are real."""

    def __init__(self, scene: Scene, targets: list[Target], writer: Writer) -> None:
        self._scene, self._targets, self._writer = scene, targets, writer

    def land(
        self, records: object, batch: int, wanted: Offsets, verify: Callable[[], None], goes_on: Callable[[], bool]
    ) -> BatchReport:
        """Commit to each table what it lacks."""
        ((_, _, ((start, end),)),) = intervals_of(wanted)
        self._scene.reads.append((start, end))
        self._scene.meanwhile.pop(len(self._scene.reads), lambda: None)()
        verify()
        for offsets, targets in group_by_missing(self._targets, wanted):
            for part in chunks(offsets, (end - start) // self._scene.parts):
                for target in targets:
                    self._commit(target, part)
        return BatchReport(batch, counts=Counts(read=end - start))

    def _commit(self, target: Target, offsets: Offsets) -> None:
        ((_, _, ((start, end),)),) = intervals_of(offsets)
        made = local_tables.rows(start, end)
        made = made.set_column(made.column_names.index("city"), "city", pa.array([self._scene.city] * made.num_rows))
        kept = made.filter(pa.array([offset % 7 > 0 for offset in range(start, end)]))
        counts = Counts(end - start, end - start - kept.num_rows, kept.num_rows, 0, kept.num_rows)
        if not kept.num_rows:
            target.remember(offsets, counts)
            return
        files = write_data_files(kept, target.table.layout(), f"redo-{start}")
        target.commit(self._writer, offsets, counts, files, Origin(lane="driver"))

    def flush(self) -> None:
        """Commit what is pending."""
        for target in self._targets:
            target.flush(self._writer)

    def close(self) -> None:
        """Has no threads."""


def dies_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Have the how many-th step that reaches a table be the last."""
    reach, left = faults.reach, [number]

    def die(where: str, detail: str = "") -> None:
        reach(where, detail)
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(faults, "reach", die)


@pytest.fixture(name="scene")
def scene_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Tables whose rows all come from an older transform; batches of 100."""
    body = {
        "pipeline": "orders",
        "topics": [TOPIC],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "bytes"},
        "freshness": "1s",
        "tables": [{"format": name, "name": "shop.orders"} for name in ("delta", "iceberg")],
        "limits": {"max_records_per_batch": 100, "commit_attempts": 3},
    }
    made = Scene(PipelineSpec.model_validate(body), places(tmp_path))
    for table in made.spec.tables:
        make_table(table, made.at)
    open_table(made.spec.quarantine_table, made.at).create(QUARANTINE_SCHEMA, genesis())
    made.land(0, 150)
    made.land(150, LANDED)

    def fake_lander(_: object, targets: list[Target], quarantine: Target, own: Writer, at: Places) -> FakeLander:
        return FakeLander(made, targets, own)

    monkeypatch.setattr(replaying, "KafkaFacts", FakeKafka)
    monkeypatch.setattr(replaying, "make_lander", fake_lander)
    monkeypatch.setattr(job, "make_session", lambda _: FakeSession())
    monkeypatch.setattr(planning, "plan_pipeline", lambda *_: FakePlan(made.spec, SCHEMA))
    without_waits(monkeypatch)
    return made
