"""A guest and a stream on one table, and offsets that are taken back: real tables of both formats, no Spark."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass

import pyarrow as pa
import pytest
from tests.support.tables import local_tables
from tests.support.tables.local_tables import TOPIC, landed_offsets, make_table
from tests.support.waiting import HANGS_SECONDS

from lakebound.errors import LeaseLostError
from lakebound.inspection.proof.history import overlaps, trace
from lakebound.operations.replay.take_back import take_back
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import BatchOverlapError, Waits, commit_entry
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table
from lakebound_spark.batch.targets import Counts, Origin, Target, Writer

FORMATS = ("delta", "iceberg")
TRIES = 100


@dataclass
class Party:
    """An application on one table: what a batch does, without Spark."""

    target: Target
    writer: Writer

    def land(self, start: int, end: int, *, with_rows: bool = True) -> None:
        """Land an interval; without rows it stays pending."""
        count = end - start
        if not with_rows:
            self.target.remember(local_tables.offsets(start, end), Counts(read=count, filtered=count))
            return
        table = self.target.table
        files = write_data_files(local_tables.rows(start, end), table.layout(), f"batch-{start}")
        counts = Counts(read=count, landed=count, rows=count)
        self.target.commit(self.writer, local_tables.offsets(start, end), counts, files, Origin(start, "driver"))


def party(spec: TableSpec, at: Places, epoch: int = 1, kind: str = "land") -> Party:
    table = open_table(spec, at)
    return Party(Target(table, table.read_ledger()), Writer("orders", epoch, lambda: None, TRIES, kind))  # type: ignore[arg-type]


@pytest.fixture
def opened(spec: TableSpec, at: Places) -> Party:
    """A stream of epoch 1 that begins at offset 1000."""
    make_table(spec, at)
    stream = party(spec, at)
    stream.target.commit(stream.writer, local_tables.offsets(1000, 1000), Counts(), [], kind="open")
    return stream


def kinds(table: Table) -> list[str]:
    return [committed.entry.kind for committed in table.entries()]


class TestGuest:
    def test_a_stream_goes_on_after_a_guest_s_commit_and_neither_fences_the_other(
        self, opened: Party, spec: TableSpec, at: Places
    ) -> None:
        guest = party(spec, at, kind="replay")
        guest.land(0, 10)
        opened.land(1000, 1010)
        guest.land(10, 20)
        opened.land(1010, 1020, with_rows=False)
        guest.land(20, 30)
        opened.target.flush(opened.writer)
        assert kinds(opened.target.table) == ["land", "replay", "replay", "land", "replay", "open", "genesis"]
        assert landed_offsets(opened.target.table) == [*range(30), *range(1000, 1010)]
        view = open_table(spec, at).read_ledger()
        assert view.coverage[TOPIC].partitions == {0: ((0, 30), (1000, 1020))} and view.epoch == 1

    def test_both_at_once_land_everything_once(self, opened: Party, spec: TableSpec, at: Places) -> None:
        guest, dice, errors = party(spec, at, kind="replay"), random.Random(7), []
        batches = 12

        def run(who: Party, first: int, barrier: threading.Barrier) -> None:
            try:
                for number in range(batches):
                    barrier.wait(HANGS_SECONDS)
                    who.land(first + number * 10, first + number * 10 + 10, with_rows=dice.random() < 0.8)
                who.target.flush(who.writer)
            except Exception as exc:
                errors.append(exc)
                barrier.abort()

        barrier = threading.Barrier(2)
        threads = [threading.Thread(target=run, args=args) for args in ((opened, 1000, barrier), (guest, 0, barrier))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANGS_SECONDS)
        assert not errors
        table = open_table(spec, at)
        view = table.read_ledger()
        assert view.coverage[TOPIC].partitions == {0: ((0, 120), (1000, 1120))}
        landed = landed_offsets(table)
        assert len(landed) == len(set(landed))
        entries = tuple(table.entries())
        history = trace(entries, view.coverage)
        assert not overlaps(history).found
        assert sum(committed.entry.rows for committed in entries) == len(landed)
        assert {"land", "replay"} <= {committed.entry.kind for committed in entries}

    def test_a_rival_that_commits_while_one_waits_does_not_refuse_the_next_attempt(
        self, opened: Party, spec: TableSpec, at: Places
    ) -> None:
        guest = party(spec, at, kind="replay")
        rival = iter(range(1000, 2000, 10))

        def land_once(_: float = 0) -> None:
            start = next(rival)
            opened.land(start, start + 10)

        land_once()
        draft = local_tables.draft(0, 10, kind="replay")
        table, view = guest.target.table, guest.target.view
        options = {"own_epoch": 1, "check_lease": lambda: None, "attempts": 2, "waits": Waits(between=land_once)}
        assert commit_entry(table, view, [], draft, **options).attempts == 2  # type: ignore[arg-type]

    def test_what_the_other_landed_is_refused_and_can_be_read_again(self, opened: Party, spec: TableSpec, at: Places) -> None:
        guest, other = party(spec, at, kind="replay"), party(spec, at, kind="replay")
        guest.land(0, 50)
        with pytest.raises(BatchOverlapError):
            other.land(40, 60)
        other.target.refresh()
        other.land(50, 60)
        assert landed_offsets(opened.target.table) == list(range(60))

    def test_a_guest_under_an_old_epoch_is_refused_and_goes_on_with_the_new_one(
        self, opened: Party, spec: TableSpec, at: Places
    ) -> None:
        guest = party(spec, at, kind="replay")
        successor = party(spec, at, epoch=2)
        successor.target.commit(successor.writer, {}, Counts(), [], kind="open")
        with pytest.raises(LeaseLostError):
            guest.land(0, 10)
        guest = party(spec, at, epoch=2, kind="replay")
        guest.land(0, 10)
        successor.land(1000, 1010)
        with pytest.raises(LeaseLostError):
            opened.land(1000, 1010)
        assert landed_offsets(successor.target.table) == [*range(10), *range(1000, 1010)]

    def test_an_interrupted_backfill_leaves_a_gap_and_the_mark_where_it_was(
        self, opened: Party, spec: TableSpec, at: Places
    ) -> None:
        party(spec, at, kind="replay").land(0, 10)
        assert open_table(spec, at).read_ledger().coverage[TOPIC].partitions == {0: ((0, 10), (1000, 1000))}


class TestTakeBack:
    """Rows that somebody deleted; the coverage claims them still."""

    @pytest.fixture
    def pipeline(self, spec: TableSpec) -> PipelineSpec:
        body = {
            "pipeline": "orders",
            "topics": [TOPIC],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "1s",
            "tables": [spec.model_dump()],
        }
        return PipelineSpec.model_validate(body)

    @pytest.fixture
    def table(self, spec: TableSpec, at: Places, pipeline: PipelineSpec) -> Table:
        """Holds [0, 40) but for the rows of [10, 15) and [35, 40); the quarantine has offset 12, and claims all."""
        held = make_table(spec, at)
        land(held, 0, 20, (0, 10), (15, 20))
        land(held, 20, 40, (20, 35))
        land(make_table(pipeline.quarantine_table, at), 0, 40, (12, 13))
        return held

    def test_only_what_nothing_stands_for_is_taken(self, table: Table, pipeline: PipelineSpec, at: Places) -> None:
        lacking = {table.spec.id: local_tables.offsets(5, 60)}
        taken = take_back(pipeline, at, lacking, epoch=2)
        expected = {0: ((10, 12), (13, 15), (35, 40))}
        assert {name: offsets[TOPIC].partitions for name, offsets in taken.items()} == {table.spec.id: expected}
        view = table.read_ledger()
        assert view.entry is not None and (view.entry.kind, view.epoch) == ("reset", 2)
        assert view.coverage[TOPIC].partitions == {0: ((0, 10), (12, 13), (15, 35), (40, 40))}
        quarantine = open_table(pipeline.quarantine_table, at).read_ledger()
        assert quarantine.coverage[TOPIC].partitions == view.coverage[TOPIC].partitions

    def test_it_lands_again_and_nothing_is_taken_twice(self, table: Table, pipeline: PipelineSpec, at: Places) -> None:
        lacking = {table.spec.id: local_tables.offsets(10, 15)}
        take_back(pipeline, at, lacking, epoch=2)
        guest = party(table.spec, at, epoch=2, kind="replay")
        guest.land(10, 12)
        guest.land(13, 15)
        assert take_back(pipeline, at, lacking, epoch=3) == {table.spec.id: {}}
        assert landed_offsets(table) == [*range(12), *range(13, 35)]
        view = open_table(table.spec, at).read_ledger()
        assert view.coverage[TOPIC].partitions == {0: ((0, 40),)} and view.epoch == 2

    def test_a_commit_in_between_has_the_rows_looked_at_again(
        self, table: Table, pipeline: PipelineSpec, at: Places, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Another repair takes the same offsets back, and they land, between our look at the rows and our commit."""
        scan, looks = type(table).scan_kafka, []

        def scan_then_be_late(looked_at: Table) -> pa.Table:
            found = scan(looked_at)
            looks.append(looked_at.spec)
            if looks.count(table.spec) == 2:
                looks.append(table.spec)
                take_back(pipeline, at, lacking, epoch=2)
                party(table.spec, at, epoch=2, kind="replay").land(10, 12)
            return found

        lacking = {table.spec.id: local_tables.offsets(10, 15)}
        monkeypatch.setattr(type(table), "scan_kafka", scan_then_be_late)
        take_back(pipeline, at, lacking, epoch=2)
        assert looks.count(table.spec) > 3
        assert open_table(table.spec, at).read_ledger().coverage[TOPIC].partitions == {0: ((0, 13), (15, 40))}
        assert landed_offsets(table) == [*range(12), *range(15, 35)]


def land(table: Table, start: int, end: int, *rows: tuple[int, int]) -> None:
    """Commit an entry for the interval, with rows for some of it."""
    pieces = [local_tables.rows(*piece) for piece in rows]
    files = write_data_files(pa.concat_tables(pieces), table.layout(), f"batch-{start}")
    draft = local_tables.draft(start, end)
    commit_entry(table, table.read_ledger(), files, draft, own_epoch=1, check_lease=lambda: None, attempts=1)
