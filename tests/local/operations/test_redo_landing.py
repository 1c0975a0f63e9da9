"""A redo's batches on real tables, with a stand-in for what Spark does: whatever is committed meanwhile, each row is new."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from tests.local.operations.test_replay_landing import FakeKafka, FakePlan, FakeSession
from tests.support.tables import local_tables
from tests.support.tables.guests import without_waits
from tests.support.tables.local_tables import SCHEMA, TOPIC, genesis, landed_offsets, make_table, places

import lakebound_spark.backfill.coverage_decides as replaying
from lakebound import faults
from lakebound.control.desired import change_desired, request_stop
from lakebound.control.folder import ControlFolder, locked
from lakebound.control.replay_result import ReplayResult
from lakebound.ledger.entry import Offsets, common, intervals_of
from lakebound.operations.redo.orders import RedoOrders
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table
from lakebound_spark.backfill import job, planning, rows_replaced
from lakebound_spark.backfill.rows_replaced import redo
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer
from lakebound_spark.landing.trimming import group_by_missing

LANDED = 400


class Scene:
    """A Delta and an Iceberg table with 400 rows; the transform of today gives other rows, and none of every seventh record."""

    def __init__(self, spec: PipelineSpec, at: Places) -> None:
        self.spec, self.at = spec, at
        self.reads: list[tuple[int, int]] = []
        self.meanwhile: dict[int, Callable[[], object]] = {}
        self.city = "redone"

    @property
    def control(self) -> ControlFolder:
        return ControlFolder(self.at.home, self.spec.pipeline)

    def tables(self) -> list[Table]:
        return [open_table(table, self.at) for table in self.spec.tables]

    def run(self, start: int, end: int, plan: str = "plan-1", held_since: float | None = None) -> ReplayResult:
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
        ((_, _, ((start, end),)),) = intervals_of(wanted)
        self._scene.reads.append((start, end))
        self._scene.meanwhile.pop(len(self._scene.reads), lambda: None)()
        verify()
        for offsets, targets in group_by_missing(self._targets, wanted):
            for target in targets:
                self._commit(target, offsets)
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
        for target in self._targets:
            target.flush(self._writer)

    def close(self) -> None:
        """Has no threads."""


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
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


def test_a_range_is_redone_in_pieces_and_its_old_rows_are_gone(scene: Scene) -> None:
    before = [table.read_ledger().coverage for table in scene.tables()]
    result = scene.run(20, 330)
    assert (result.state, result.chunks_done) == ("completed", 4), result
    assert scene.shown() == scene.expected(20, 330)
    assert [table.read_ledger().coverage for table in scene.tables()] == before
    entry = next(iter(scene.tables()[0].entries())).entry
    assert (entry.kind, entry.decision, entry.newest_redo) == ("redo", "plan-1", entry.commit)


def test_the_same_plan_again_does_nothing_and_another_plan_does_all(scene: Scene) -> None:
    scene.run(0, 200)
    versions = [table.read_ledger().version for table in scene.tables()]
    scene.reads.clear()
    assert scene.run(0, 200).state == "completed"
    assert not scene.reads and [table.read_ledger().version for table in scene.tables()] == versions
    scene.city = "once more"
    assert scene.run(0, 200, plan="plan-2").state == "completed"
    assert scene.shown() == scene.expected(0, 200, city="once more")


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
@pytest.mark.parametrize("at", ["delta", "iceberg"])
@pytest.mark.parametrize("number", [1, 2])
def test_one_that_died_goes_on_where_it_was(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, point: str, at: str, number: int
) -> None:
    reach, seen = faults.reach, list[str]()

    def die(where: str, detail: str = "") -> None:
        reach(where, detail)
        if (where, detail) == (point, at):
            seen.append(where)
            if len(seen) == number:
                raise KeyboardInterrupt

    monkeypatch.setattr(faults, "reach", die)
    with pytest.raises(KeyboardInterrupt):
        scene.run(0, 300)
    monkeypatch.setattr(faults, "reach", reach)
    assert scene.run(0, 300).state == "completed"
    assert scene.shown() == scene.expected(0, 300)


def test_one_that_was_asked_to_end_leaves_whole_pieces(scene: Scene) -> None:
    scene.meanwhile[2] = lambda: request_stop(scene.control, "redo-1", reason="test", by="test")
    result = scene.run(0, 400)
    assert (result.state, result.chunks_done) == ("stopped", 2)
    assert scene.shown() == scene.expected(0, 200)


def test_what_the_stream_lands_meanwhile_stays(scene: Scene) -> None:
    scene.meanwhile[1] = lambda: scene.land(400, 450)
    scene.meanwhile[2] = lambda: scene.land(450, 500)
    assert scene.run(100, 300).state == "completed"
    assert scene.shown() == scene.expected(100, 300, landed=500)


def test_a_held_pipeline_gets_the_rows_of_a_plan_that_was_applied_under_the_hold(scene: Scene) -> None:
    hold = change_desired(scene.control, "held", reason="look first", by="test")
    assert scene.run(0, 100).state == "refused", "it was held after the plan was applied"
    assert scene.shown() == scene.expected(0, 0)
    assert scene.run(0, 100, held_since=hold.since).state == "completed"
    assert scene.shown() == scene.expected(0, 100)


@pytest.mark.parametrize("is_held", [False, True])
def test_a_hold_that_comes_meanwhile_ends_it_after_the_piece(scene: Scene, is_held: bool) -> None:
    since = change_desired(scene.control, "held", reason="look first", by="test").since if is_held else None
    scene.meanwhile[2] = lambda: change_desired(scene.control, "held", reason="stop that", by="test")
    result = scene.run(0, 400, held_since=since)
    assert (result.state, result.chunks_done) == ("refused", 2)
    assert scene.shown() == scene.expected(0, 200)


def test_a_repair_waits_until_it_has_ended(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows_replaced, "_ANOTHER_REPAIR_SECONDS", 0.1)
    with locked(scene.control.repair, 1.0):
        result = scene.run(0, 100)
    assert result.state in ("refused", "failed") and scene.shown() == scene.expected(0, 0)
    assert scene.run(0, 100).state == "completed"


def test_any_sequence_of_landing_and_redo_shows_what_the_newest_transform_makes(scene: Scene) -> None:
    choice, landed = random.Random(54), LANDED
    expected: dict[int, str] = {at: f"city {at % 3}" for at in range(landed)}
    for number in range(5):
        if choice.random() < 0.5:
            scene.land(landed, landed + 30)
            expected |= {at: f"city {at % 3}" for at in range(landed, landed + 30)}
            landed += 30
        start, end = sorted(choice.sample(range(landed + 1), 2))
        scene.city = f"redone {number}"
        assert scene.run(start, end, plan=f"plan-{number}").state == "completed"
        expected = {at: city for at, city in expected.items() if not start <= at < end}
        expected |= {at: scene.city for at in range(start, end) if at % 7}
        assert scene.shown() == [expected] * 2
    assert [sorted(landed_offsets(table)) for table in scene.tables()] == [sorted(expected)] * 2
