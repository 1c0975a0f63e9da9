"""A pipeline in small for rewinds: real tables of both formats and a quarantine, a stand-in for Kafka, and no application."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import Incident
from lakebound.inspection.proof import collect as prove_module
from lakebound.inspection.proof.collect import prove
from lakebound.inspection.proof.facts import Readable
from lakebound.inspection.proof.result import Proof
from lakebound.ledger.entry import Entry, Offsets, missing, new_commit_id
from lakebound.ledger.topics import TopicFacts
from lakebound.operations.recovery.plan import RepairPlan
from lakebound.operations.recovery.rewind.apply import apply_rewind
from lakebound.operations.recovery.rewind.facts import RewindRequest, make_plan
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table
from tests.support.tables.local_tables import PIPELINE, SCHEMA, TOPIC, TOPIC_ID, genesis, landed_offsets, offsets, places, rows


@dataclass(frozen=True)
class StandInKafka:
    """What ``KafkaFacts`` would say."""

    earliest: int = 0
    latest: int = 1_000_000
    topic_id: str = TOPIC_ID
    partitions: int = 1

    def topics(self, names: Iterable[str]) -> dict[str, TopicFacts]:
        """Return the facts of each topic."""
        numbers = range(self.partitions)
        known = TopicFacts(self.topic_id, dict.fromkeys(numbers, self.earliest), dict.fromkeys(numbers, self.latest))
        return dict.fromkeys(names, known)


@dataclass
class World:
    """The pipeline, and the application of an epoch that lands its batches."""

    at: Places
    spec: PipelineSpec
    kafka: StandInKafka = field(default_factory=StandInKafka)
    epoch: int = 0

    @property
    def control(self) -> ControlFolder:
        """The pipeline's folder of state."""
        return ControlFolder(self.at.home, self.spec.pipeline)

    @property
    def delta(self) -> TableSpec:
        """The Delta table."""
        return self.spec.tables[0]

    @property
    def iceberg(self) -> TableSpec:
        """The Iceberg table."""
        return self.spec.tables[1]

    @property
    def all(self) -> tuple[TableSpec, ...]:
        """The tables, the quarantine last."""
        return (*self.spec.tables, self.spec.quarantine_table)

    def start(self) -> None:
        """Commit an ``open`` entry of a new epoch to every table, as an application does."""
        self.epoch = 1 + max(open_table(table, self.at).read_ledger().epoch for table in self.all)
        for table in self.all:
            self._commit(table, 0, 0, set(), kind="open")

    def land(self, start: int, end: int, bad: Collection[int] = (), tables: Collection[TableSpec] | None = None) -> None:
        """Land what the tables lack of a batch: its bad records in quarantine first."""
        if bad:
            self._commit(self.spec.quarantine_table, start, end, set(range(start, end)) - set(bad), quarantined=len(bad))
        for table in self.spec.tables if tables is None else tables:
            self._commit(table, start, end, set(bad), quarantined=len(bad))

    def cover(self, landed: Offsets) -> None:
        """Land offsets of which every record is filtered: an entry without a row in every table."""
        for table in self.spec.tables:
            self._commit_entry(table, [], {"range": landed, "read": 1, "filtered": 1})

    def relands(self, end: int, bad: Collection[int] = ()) -> None:
        """Start anew and land everything from the lowest mark to an end, trimmed per table."""
        self.start()
        held = {table.id: open_table(table, self.at).read_ledger().coverage for table in self.all}
        for table in (self.spec.quarantine_table, *self.spec.tables):
            for intervals in (part.partitions[0] for part in missing(offsets(0, end), held[table.id]).values()):
                for start, stop in intervals:
                    own = {offset for offset in bad if start <= offset < stop}
                    absent = set(range(start, stop)) - own if table == self.spec.quarantine_table else own
                    self._commit(table, start, stop, absent, quarantined=len(own))

    def plan(self, to_ms: int | None, table: str | None = None) -> RepairPlan:
        """Plan a rewind; without a time, the undoing of the last one."""
        return make_plan(self.spec, self.at, RewindRequest(to_ms, table), kafka=self.kafka).plan  # type: ignore[arg-type]

    def apply(self, to_ms: int | None, table: str | None = None, approved: str | None = None) -> Incident:
        """Plan and apply, unless another hash was approved."""
        request = RewindRequest(to_ms, table)
        approved = approved or self.plan(to_ms, table).hash
        return apply_rewind(self.spec, self.at, request, approved, by="a test", kafka=self.kafka)  # type: ignore[arg-type]

    def rows(self, table: TableSpec) -> list[int]:
        """Return the offset of every row of a table."""
        return landed_offsets(open_table(table, self.at))

    def coverage_end(self, table: TableSpec) -> int:
        """Return the mark of a table that has landed from 0 without a gap."""
        ((start, end),) = open_table(table, self.at).read_ledger().coverage[TOPIC].partitions[0]
        assert start == 0
        return end

    def prove(self, end: int) -> Proof:
        """Prove every row, with Kafka holding [0, end)."""
        return prove(self.spec, self.at, deep=True, facts=replace(self.kafka, latest=end))  # type: ignore[arg-type]

    def assert_landed_once(self, end: int, bad: Collection[int] = ()) -> None:
        """Check the rows of every table against [0, end) and its bad records, and that the proof says the same."""
        good = [offset for offset in range(end) if offset not in bad]
        assert [self.rows(table) for table in self.all] == [good, good, list(bad)]
        proof = self.prove(end)
        assert proof.ok, [problem for table in proof.tables for problem in table.problems]
        assert (proof.missing, proof.duplicated) == (0, 0)

    def _commit(
        self, spec: TableSpec, start: int, end: int, without: Collection[int], kind: str = "land", quarantined: int = 0
    ) -> None:
        landed = [offset for offset in range(start, end) if offset not in without]
        is_quarantine = spec == self.spec.quarantine_table
        fields = {
            "kind": kind,
            "range": offsets(start, end) if start < end else {},
            "read": len(landed) if is_quarantine else end - start,
            "landed": 0 if is_quarantine else len(landed),
            "quarantined": quarantined,
            "rows": len(landed),
        }
        self._commit_entry(spec, landed, fields)

    def _commit_entry(self, spec: TableSpec, landed: list[int], fields: Mapping[str, object]) -> None:
        table = open_table(spec, self.at)
        view = table.read_ledger()
        files = write_data_files(_rows_of(landed), table.layout(), f"batch-{landed[0]}") if landed else []
        draft = {"kind": "land", "pipeline": PIPELINE, "epoch": self.epoch, "commit": new_commit_id(), **fields}
        commit_entry(
            table,
            view,
            files,
            Entry.model_validate(draft),
            own_epoch=self.epoch,
            check_lease=lambda: None,
            attempts=1,
        )


@pytest.fixture(name="world")
def world_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A pipeline whose tables an application has just opened; every offset that is asked for is readable."""
    monkeypatch.setattr(prove_module, "read_offsets", readable)
    return make_world(tmp_path)


class PowerCutError(Exception):
    """The process is gone."""


def cut_short_at(
    monkeypatch: pytest.MonkeyPatch, kind: type[Table], *, after: bool = False, error: Exception | None = None
) -> None:
    """Have the process die, or meet an error, when it restores a table of this kind, or just after it has."""
    restore = kind.restore

    def cut(self: Table, version: str, entry: Entry) -> str:
        if after:
            restore(self, version, entry)
        raise error or PowerCutError

    monkeypatch.setattr(kind, "restore", cut)


def described(**changes: object) -> PipelineSpec:
    """Return the pipeline of a world."""
    body = {
        "pipeline": PIPELINE,
        "topics": [TOPIC],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "bytes"},
        "freshness": "500ms",
        "tables": [{"format": "delta", "name": "shop.orders"}, {"format": "iceberg", "name": "shop.orders"}],
        **changes,
    }
    return PipelineSpec.model_validate(body)


def make_world(folder: Path, at: Places | None = None, **changes: object) -> World:
    """Return a pipeline whose tables an application of epoch 1 has just opened, in a folder or at other places."""
    world = World(at or places(folder), described(**changes))
    for table in world.all:
        open_table(table, world.at).create(SCHEMA, genesis())
    world.start()
    return world


def now_ms() -> int:
    """Return a moment after everything that was committed and before everything that will be."""
    moment = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= moment:
        time.sleep(0.0005)
    return moment


def readable(connection: object, wanted: dict[tuple[str, int], tuple[int, int]]) -> Readable:
    """Return every offset that is asked for, in place of ``lakebound.inspection.proof.readable_offsets.read_offsets``."""
    return {place: np.arange(start, end, dtype=np.int64) for place, (start, end) in wanted.items()}


def _rows_of(landed: list[int]) -> pa.Table:
    runs = [
        [offset for _, offset in group]
        for _, group in groupby(enumerate(landed), key=lambda numbered: numbered[1] - numbered[0])
    ]
    return pa.concat_tables([rows(run[0], run[-1] + 1) for run in runs])
