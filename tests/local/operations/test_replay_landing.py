"""A replay's batches on real tables, with a stand-in for what Spark does: whatever is committed meanwhile, each lands once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.tables import local_tables
from tests.support.tables.guests import FakeKafka, FakePlan, FakeSession, without_waits
from tests.support.tables.local_tables import SCHEMA, TOPIC, TOPIC_ID, genesis, landed_offsets, make_table, places

import lakebound_spark.backfill.coverage_decides as replaying
from lakebound.control.desired import change_desired, request_stop
from lakebound.control.folder import ControlFolder
from lakebound.control.replay_result import ReplayResult, read_result
from lakebound.errors import CommitUnknownError
from lakebound.ledger.entry import Offsets, TopicOffsets, carried, intervals_of
from lakebound.operations.replay.orders import ReplayOrders
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.schema_change import Addition, SchemaPlan
from lakebound.tables.table import Table, open_table
from lakebound_spark.backfill import job, planning
from lakebound_spark.backfill.coverage_decides import replay
from lakebound_spark.batch.report import BatchReport
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer
from lakebound_spark.landing.trimming import group_by_missing

MARK = 1000
Meanwhile = Callable[[], None]


@dataclass
class Scene:
    """The pipeline, what was read of Kafka, and what happens before the how many-th batch is committed."""

    spec: PipelineSpec
    at: Places
    reads: list[tuple[int, int]] = field(default_factory=list)
    meanwhile: dict[int, Meanwhile] = field(default_factory=dict)

    def orders(self, start: int, end: int) -> ReplayOrders:
        body = {"spec": self.spec, "places": self.at, "app_id": "replay-1", "freshness": "available_now"}
        return ReplayOrders(**body, wanted=local_tables.offsets(start, end))

    @property
    def control(self) -> ControlFolder:
        return ControlFolder(self.at.home, self.spec.pipeline)

    def tables(self) -> list[Table]:
        return [open_table(table, self.at) for table in self.spec.tables]

    def landed(self) -> list[list[int]]:
        return [landed_offsets(table) for table in self.tables()]

    def coverages(self) -> list[Any]:
        return [table.read_ledger().coverage[TOPIC].partitions[0] for table in self.tables()]


class FakeLander:
    """Lands one row per offset; its commits are real."""

    def __init__(self, scene: Scene, targets: Sequence[Target], writer: Writer) -> None:
        self._scene, self._targets, self._writer = scene, list(targets), writer

    def land(
        self, records: object, batch: int, wanted: Offsets, verify: Callable[[], None], goes_on: Callable[[], bool]
    ) -> BatchReport:
        ((_, _, ((start, end),)),) = intervals_of(wanted)
        self._scene.reads.append((start, end))
        self._scene.meanwhile.pop(len(self._scene.reads), lambda: None)()
        verify()
        for offsets, targets in group_by_missing(self._targets, wanted):
            for target in targets:
                self.commit(target, offsets)
        return BatchReport(batch, counts=Counts(read=end - start, landed=end - start, rows=end - start))

    def flush(self) -> None:
        for target in self._targets:
            target.flush(self._writer)

    def close(self) -> None:
        """Has no threads."""

    def commit(self, target: Target, offsets: Offsets) -> None:
        """Land the offsets in one table."""
        for _, _, intervals in intervals_of(offsets):
            files = [
                file
                for start, end in intervals
                for file in write_data_files(local_tables.rows(start, end), target.table.layout(), f"replay-{start}")
            ]
            count = sum(end - start for start, end in intervals)
            target.commit(self._writer, offsets, Counts(read=count, landed=count, rows=count), files, Origin(lane="driver"))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A Delta and an Iceberg table whose stream began at offset 1000; batches of 100."""
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
    open_with_epoch(made, 1)
    open_table(made.spec.quarantine_table, made.at).create(QUARANTINE_SCHEMA, genesis())

    def fake_lander(_: object, targets: Sequence[Target], quarantine: Target, own: Writer, at: Places) -> FakeLander:
        return FakeLander(made, targets, own)

    monkeypatch.setattr(replaying, "KafkaFacts", FakeKafka)
    monkeypatch.setattr(replaying, "make_lander", fake_lander)
    monkeypatch.setattr(job, "make_session", lambda _: FakeSession())
    monkeypatch.setattr(planning, "plan_pipeline", lambda *_: FakePlan(made.spec, SCHEMA))
    without_waits(monkeypatch)
    return made


def open_with_epoch(scene: Scene, epoch: int, start: int = MARK) -> None:
    """Commit what an application commits when it starts: the epoch, and where it begins."""
    for table in scene.tables():
        target = Target(table, table.read_ledger())
        target.commit(writer(epoch), local_tables.offsets(start, start), Counts(), [], kind="open")


def writer(epoch: int) -> Writer:
    return Writer("orders", epoch, lambda: None, 3)


def land_rival(scene: Scene, start: int, end: int, epoch: int = 1) -> None:
    """Land an interval in the Delta table as another replay does."""
    table = scene.tables()[0]
    target = Target(table, table.read_ledger())
    FakeLander(scene, [target], writer(epoch)).commit(target, local_tables.offsets(start, end))


def test_a_range_lands_in_pieces_the_oldest_first_and_stays_below_the_mark(scene: Scene) -> None:
    result = replay(scene.orders(0, 1200))
    assert (result.state, result.chunks_done, result.read) == ("completed", 12, 1000), result
    assert scene.reads == [(start, start + 100) for start in range(0, 1000, 100)]
    assert scene.landed() == [list(range(1000))] * 2 and scene.coverages() == [((0, 1000),)] * 2
    assert read_result(scene.control, "replay-1", ReplayResult) == result
    assert result.tables["delta:shop.orders"].rows == 1000
    kinds = [committed.entry.kind for committed in scene.tables()[0].entries()]
    assert kinds == ["replay"] * 11 + ["open", "genesis"]


def test_landing_it_again_reads_nothing(scene: Scene) -> None:
    replay(scene.orders(0, 300))
    versions = [table.read_ledger().version for table in scene.tables()]
    scene.reads.clear()
    assert replay(scene.orders(0, 300)).state == "completed"
    assert not scene.reads and [table.read_ledger().version for table in scene.tables()] == versions


def test_one_that_is_cut_short_is_a_gap_in_every_table(scene: Scene) -> None:
    def ask_to_end() -> None:
        request_stop(scene.control, "replay-1", reason="test", by="test")

    scene.meanwhile[1] = ask_to_end
    result = replay(scene.orders(0, 1000))
    assert (result.state, result.chunks_done) == ("stopped", 1) and "run it again" in result.reason
    assert scene.coverages() == [((0, 100), (1000, 1000))] * 2


def test_a_new_application_meanwhile_is_followed(scene: Scene) -> None:
    scene.meanwhile[2] = lambda: open_with_epoch(scene, 2)
    assert replay(scene.orders(0, 300)).state == "completed"
    assert scene.reads == [(0, 100), (100, 200), (100, 200), (200, 300)]
    assert scene.landed() == [list(range(300))] * 2
    assert [table.read_ledger().epoch for table in scene.tables()] == [2, 2]


def test_what_another_replay_lands_meanwhile_is_trimmed(scene: Scene) -> None:
    scene.meanwhile[1] = lambda: land_rival(scene, 0, 100)
    assert replay(scene.orders(0, 100)).state == "completed"
    assert scene.landed() == [list(range(100))] * 2
    entries = list(scene.tables()[0].entries())
    assert sum(committed.entry.rows for committed in entries) == 100


def test_a_rollback_meanwhile_lowers_the_mark_and_the_rest_is_the_streams(scene: Scene) -> None:
    """A rewind to before offset 150: the stream reads from there, so nothing above may be replayed."""

    def rewind() -> None:
        for table in scene.tables():
            reset = local_tables.draft(0, 0, kind="reset", epoch=2)
            reset = reset.model_copy(update={"coverage": {TOPIC: topic_offsets((0, 150))}})
            commit_entry(table, table.read_ledger(), [], reset, own_epoch=2, check_lease=lambda: None, attempts=1)

    scene.meanwhile[3] = rewind
    result = replay(scene.orders(0, 400))
    assert result.state == "completed"
    assert scene.reads == [(0, 100), (100, 200), (200, 300)]
    assert scene.coverages() == [((0, 150),)] * 2


def add_note(scene: Scene) -> None:
    """Give every table a column as a start does."""
    for table in scene.tables():
        entry = table.read_ledger().entry
        table.change_schema(SchemaPlan((Addition(("note",), pa.string()),)), None if entry is None else carried(entry))


def test_a_column_that_a_start_adds_meanwhile_ends_it(scene: Scene) -> None:
    """It decodes without the column: its values would be null without a word."""

    def start_anew() -> None:
        add_note(scene)
        open_with_epoch(scene, 2)

    scene.meanwhile[2] = start_anew
    result = replay(scene.orders(0, 300))
    assert (result.state, result.error_class) == ("failed", "ColumnsMovedError") and "Run it again" in result.reason
    assert scene.reads == [(0, 100), (100, 200)] and scene.landed() == [list(range(100))] * 2


def test_a_column_that_a_rewind_takes_away_meanwhile_ends_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    delta = scene.tables()[0]
    before = delta.read_ledger()
    add_note(scene)
    plan = FakePlan(scene.spec, SCHEMA.append(pa.field("note", pa.string())))
    monkeypatch.setattr(planning, "plan_pipeline", lambda *_: plan)

    def rewind() -> None:
        reset = local_tables.draft(0, 0, kind="reset", epoch=2).model_copy(update={"coverage": before.coverage})
        delta.restore(before.version, reset)

    scene.meanwhile[2] = rewind
    result = replay(scene.orders(0, 300))
    assert (result.state, result.error_class) == ("refused", "SchemaChangedError") and "column note" in result.reason
    assert scene.reads == [(0, 100), (100, 200)] and landed_offsets(scene.tables()[0]) == []


def test_one_that_reads_a_table_in_the_middle_of_a_rewind_lands_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has looked for a hold before; the rewind will put back the quarantine last, and with it what it had landed there."""
    refresh, begun = Target.refresh, list[int]()

    def after_the_hold(target: Target) -> None:
        if not begun:
            begun.append(1)
            change_desired(scene.control, "held", reason="rewind")
            open_with_epoch(scene, 2)
        refresh(target)

    monkeypatch.setattr(Target, "refresh", after_the_hold)
    result = replay(scene.orders(0, 100))
    assert (result.state, result.error_class, scene.reads) == ("refused", "HeldError", [])
    assert scene.landed() == [[], []]


def test_one_that_is_held_in_flight_is_not_tried_again(scene: Scene) -> None:
    def hold() -> None:
        change_desired(scene.control, "held", reason="rewind")
        open_with_epoch(scene, 2)

    scene.meanwhile[1] = hold
    result = replay(scene.orders(0, 100))
    assert (result.state, result.error_class, len(scene.reads)) == ("refused", "HeldError", 1)
    assert scene.landed() == [[], []]


def test_a_table_that_cannot_be_written_ends_it_after_so_many_attempts(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CommitUnknownError("delta:shop.orders", 3, "disk full")

    monkeypatch.setattr(FakeLander, "commit", fail)
    result = replay(scene.orders(0, 100))
    assert (result.state, result.error_class, len(scene.reads)) == ("failed", "CommitUnknownError", 3)
    assert "disk full" in result.reason


def test_a_held_pipeline_and_a_recreated_topic_are_refused(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.meanwhile[1] = lambda: change_desired(scene.control, "held", reason="audit")
    result = replay(scene.orders(0, 300))
    assert (result.state, result.error_class, result.chunks_done) == ("refused", "HeldError", 1)
    change_desired(scene.control, "running")
    monkeypatch.setattr(FakeKafka, "topic_ids", lambda *_: {TOPIC: "another"})
    result = replay(scene.orders(0, 300))
    assert (result.state, result.error_class) == ("refused", "TopicRecreatedError")
    assert scene.landed() == [list(range(100))] * 2


def topic_offsets(*intervals: tuple[int, int]) -> TopicOffsets:
    return TopicOffsets(topic_id=TOPIC_ID, partitions={0: intervals})
