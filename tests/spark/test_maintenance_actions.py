"""Iceberg's rewriting by Spark on real tables, also beside a stream; and what Spark reads of a maintained Delta table."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.iceberg_spark import act_in_spark, start_spark
from tests.support.tables.local_tables import landed_offsets, lander, make_table, offsets, rows
from tests.support.tables.maintained import compaction, content, live_files_of, small_commits, stale_carries
from tests.support.tables.taking import taking_stream
from tests.support.waiting import HANGS_SECONDS, STRETCH, wait_until

from lakebound.control import turns
from lakebound.control.folder import ControlFolder
from lakebound.control.handover import HandOver
from lakebound.control.turns import AskForTurn, GiveTurns
from lakebound.ledger.entry import Entry
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.orphan_files import remove_orphans
from lakebound.operations.maintenance.steps import (
    CheckpointLog,
    CleanLog,
    Compact,
    ExpireSnapshots,
    RemoveOrphans,
    StepEffect,
    Vacuum,
)
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg.catalog import CATALOG_NAME
from lakebound.tables.iceberg.health import read_facts
from lakebound.tables.iceberg.local_files import local_path
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

pytestmark = pytest.mark.spark

Act = Callable[..., Any]
MANY = 200 if LONG_FORM else 30
"""Small commits."""
HASTY = 200 if LONG_FORM else 100
"""Commits before a stream without a pause. The more there are, the longer an attempt of Iceberg's takes."""
COMPACTIONS = 3
"""Beside a stream, one after another."""
TRANSFORMS = ["hour(at)", "id", *(["at", "truncate(10, id)", "month(at)", "year(at)"] if LONG_FORM else [])]
TEXTS = {"long when escaped": "ä" * 100, "empty": "", **({"long": "x" * 300, "odd": "a/b=c%?#"} if LONG_FORM else {})}


def iceberg(name: str, *partition_by: str) -> TableSpec:
    return TableSpec(format="iceberg", name=name, partition_by=partition_by)


def _sql(query: str) -> list[dict[str, Any]]:
    spark = SparkSession.getActiveSession()
    assert spark is not None
    return [row.asDict(recursive=True) for row in spark.sql(query).collect()]


@pytest.fixture(scope="module")
def pool(at: Places, jars: Path) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=start_spark, initargs=(str(at.home), str(jars))) as workers:
        yield workers


@pytest.fixture(scope="module")
def act(pool: ProcessPoolExecutor, at: Places) -> Act:
    def run(kind: str, table: TableSpec, step: Any = None, times: int = 1) -> Any:
        return pool.submit(act_in_spark, kind, table, at, step, times).result(timeout=HANGS_SECONDS)

    return run


def newest_entry(spec: TableSpec, at: Places) -> Entry:
    return next(iter(open_table(spec, at).entries())).entry


def test_many_commits_become_one_file_and_the_ledger_stays(at: Places, act: Act) -> None:
    spec = iceberg("many.orders")
    small_commits(spec, at, MANY)
    before = content(spec, at)
    done = act("compact", spec, compaction(spec))
    assert isinstance(done, StepEffect), done
    assert (done.files_before, done.files_after, done.commits, done.conflicts) == (MANY, 1, 1, 0)
    assert done.bytes_rewritten > 1000 * MANY
    assert live_files_of(spec, at) == 1
    assert content(spec, at) == before
    carried = newest_entry(spec, at)
    assert carried.kind == "carry" and carried.coverage == offsets(0, MANY) and not carried.range
    assert act("compact", spec, compaction(spec)).is_nothing

    ids = tuple(snapshot.snapshot_id for snapshot in foreign_iceberg(spec, at).metadata.snapshots)
    turn = AskForTurn(ControlFolder(at.home, "orders"), spec.id)
    expired = expire(spec, ExpireSnapshots(table=spec.id, reason="a test", snapshot_ids=ids), at, turn)
    assert expired.files_after == 2, "the newest commit that counts, and the compaction on it"
    assert content(spec, at) == before
    assert not list(local_path(foreign_iceberg(spec, at).location()).rglob("*.crc"))
    look = RemoveOrphans(table=spec.id, reason="a test", mode="quarantine", older_than_ms=2**60, delete_quarantined_before_ms=0)
    strays = remove_orphans(spec, look, at, "run", 2**60).removed
    assert all(path.startswith("metadata/") for path in strays), "Iceberg leaves a manifest behind, but no data"
    assert content(spec, at) == before
    lander(spec, at).land(MANY, MANY + 1)
    assert content(spec, at).rows == MANY + 1


def test_a_compaction_keeps_to_its_partition(at: Places, act: Act) -> None:
    spec = iceberg("kept.orders", "day(at)", "truncate(4, city)")
    small_commits(spec, at, 60)
    before = content(spec, at)
    facts = read_facts(spec, at, 0)
    assert facts is not None
    chosen = next(partition for partition in facts.partitions if partition.values["at_day"] == "2023-11-16")
    done = act("compact", spec, compaction(spec, partition=chosen.values))
    assert isinstance(done, StepEffect), done
    assert (done.files_before, done.files_after) == (24, 1)
    assert live_files_of(spec, at) == 60 - 24 + 1
    assert content(spec, at) == before
    name, text = act("compact", spec, compaction(spec, partition={"city": "city 1"}))
    assert name == "PartitionUnknownError" and "by city" in text and "city 1" not in text


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_every_transforms_partition_is_found(transform: str, at: Places, act: Act) -> None:
    spec = iceberg(f"found.by_{transform.split('(')[0]}_{len(transform)}", transform)
    make_table(spec, at)
    app = lander(spec, at)
    for copy in range(2):
        files = [write_data_files(rows(start, start + 1), app.table.layout(), f"c{copy}-{start}") for start in range(3)]
        app.land(copy * 10, copy * 10 + 3, [file for (file,) in files])
    facts = read_facts(spec, at, 0)
    assert facts is not None
    partition = max(facts.partitions, key=lambda found: len(found.files))
    done = act("compact", spec, compaction(spec, partition=partition.values))
    assert isinstance(done, StepEffect) and (done.files_before, done.files_after) == (len(partition.files), 1), (
        partition,
        done,
    )
    assert live_files_of(spec, at) == facts.files - len(partition.files) + 1


@pytest.mark.parametrize("value", TEXTS.values(), ids=TEXTS)
def test_a_partition_of_any_text_is_compacted(value: str, at: Places, act: Act) -> None:
    spec = iceberg(f"texts.of_{len(value)}", "city")
    make_table(spec, at)
    app = lander(spec, at)
    for start in (0, 10):
        made = rows(start, start + 10)
        column = made.schema.get_field_index("city")
        made = made.set_column(column, made.schema.field(column), pa.array([value] * made.num_rows))
        app.land(start, start + 10, write_data_files(made, app.table.layout(), f"t{start}"))
    before = content(spec, at)
    done = act("compact", spec, compaction(spec, partition={"city": value}))
    assert isinstance(done, StepEffect) and (done.files_before, done.files_after) == (2, 1), done
    assert (live_files_of(spec, at), content(spec, at)) == (1, before)


def test_files_are_sorted_where_the_spec_asks(at: Places, act: Act) -> None:
    spec = iceberg("sorted.orders")
    make_table(spec, at)
    app = lander(spec, at)
    for start in (40, 20, 0):
        app.land(start, start + 20)
    before = content(spec, at)
    assert act("compact", spec, compaction(spec, order_by=("city", "id"))).files_after == 1
    (path,) = foreign_iceberg(spec, at).inspect.files()["file_path"].to_pylist()
    found = pq.read_table(local_path(path), columns=["city", "id"]).to_pylist()
    assert found == sorted(found, key=lambda row: (row["city"], row["id"]))
    assert content(spec, at) == before


@only_in_long_form  # shortly: beside a stream without a pause, below
def test_a_compaction_beside_a_stream_loses_and_doubles_nothing(at: Places, act: Act) -> None:
    spec = iceberg("beside.orders")
    app = small_commits(spec, at, 60)
    app.attempts = 20
    give_turn = GiveTurns(ControlFolder(at.home, "orders"))  # as an application does: a slow machine needs it
    ended, stop = threading.Event(), threading.Event()
    landed = 60

    def stream() -> None:
        nonlocal landed
        while not stop.is_set():
            give_turn(spec.id, app.table.has_moved_on)
            app.land(landed, landed + 1)
            landed += 1
            stop.wait(0.4)
        ended.set()

    streaming = threading.Thread(target=stream)
    streaming.start()
    results = []
    try:
        for _ in range(COMPACTIONS):
            some = landed + 4  # a compaction that finds one new file has nothing to do
            wait_until(lambda some=some: landed >= some, 60, "a few commits")
            results.append(act("compact", spec, compaction(spec)))
    finally:
        stop.set()
        streaming.join()
    assert ended.is_set(), "the stream failed"
    assert all(isinstance(done, StepEffect) for done in results), results
    assert sum(done.commits for done in results) == COMPACTIONS and results[0].files_before >= 60
    assert stale_carries(spec, at) == [], "each carries the entry of the version that it follows"
    table = open_table(spec, at)
    view = table.read_ledger()
    assert landed_offsets(table) == list(range(landed)) and landed > 62
    assert view.entry is not None and view.entry.kind == "land" and view.coverage == offsets(0, landed)


def test_a_compaction_gets_through_beside_a_stream_that_commits_without_a_pause(
    at: Places, act: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt of Iceberg's takes longer than the stream needs for a commit, so without a turn it loses more than fifty.

    On a busy machine the stream may be slow for once before a turn is asked for; then there is none, and another is tried.
    There an attempt also takes longer than the longest turn, of which there is one in two minutes. So turns are longer here,
    and more frequent; how long they are otherwise is tested in tests/unit/control/test_commit_turn.py.
    """
    monkeypatch.setattr(turns, "_LONGEST_SECONDS", STRETCH * turns._LONGEST_SECONDS)
    monkeypatch.setattr(turns, "_YOUNG_SECONDS", STRETCH * turns._YOUNG_SECONDS)
    monkeypatch.setattr(turns, "_SHARE", 0.25)
    for name in ("hasty.orders", "hasty.again", "hasty.thrice", "hasty.last"):
        spec = iceberg(name)
        small_commits(spec, at, HASTY)
        done, held = _compacted_beside_a_hasty_stream(spec, at, act)
        assert isinstance(done, StepEffect) and done.commits == 1 and done.files_before >= HASTY, done
        assert done.conflicts <= 50, (done, max(held))
        assert len(held) > 2 * done.conflicts, "the stream went on"
        assert stale_carries(spec, at) == [], "each carries the entry of the version that it follows"
        table, landed = open_table(spec, at), HASTY + len(held)
        assert landed_offsets(table) == list(range(landed)) and table.read_ledger().coverage == offsets(0, landed)
        if max(held):
            return
    raise AssertionError("the stream gave no turn to any of the compactions")


def _compacted_beside_a_hasty_stream(spec: TableSpec, at: Places, act: Act) -> tuple[Any, list[float]]:
    """Compact while a stream commits; return what was done, and for how many seconds each commit of the stream was held."""
    give_turn, stop = GiveTurns(ControlFolder(at.home, "orders")), threading.Event()
    app, held = lander(spec, at), list[float]()
    app.attempts = 50

    def stream() -> None:
        number = HASTY
        while not stop.is_set():
            held.append(give_turn(spec.id, app.table.has_moved_on))
            app.land(number, number + 1)
            number += 1

    streaming = threading.Thread(target=stream)
    streaming.start()
    try:
        return act("compact", spec, compaction(spec)), held
    finally:
        stop.set()
        streaming.join()


def test_what_iceberg_prepared_is_committed_by_the_stream_and_spark_reads_it(
    at: Places, act: Act, pool: ProcessPoolExecutor
) -> None:
    """Deletes of rows, too: they hold for the same rows before and after, and one that comes later finds its rows."""
    spec = iceberg("handed.orders")
    small_commits(spec, at, 150)
    name = f"{CATALOG_NAME}.handed.orders"

    def sql(query: str) -> list[dict[str, Any]]:
        return pool.submit(_sql, query).result(timeout=HANGS_SECONDS)

    sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    for rest in range(3):
        sql(f"DELETE FROM {name} WHERE id % 10 = {rest}")
    steps = (("rewrite_position_deletes", None), ("rewrite_manifests", None), ("compact", compaction(spec, with_deletes=True)))
    with taking_stream(spec, at, 150) as stream:
        results = [act(kind, spec, step) for kind, step in steps]
        kept = {one.snapshot_id for one in foreign_iceberg(spec, at).metadata.snapshots[:100]}
        step = ExpireSnapshots(table=spec.id, reason="a test", snapshot_ids=tuple(kept))
        control = ControlFolder(at.home, "orders")
        expired = expire(spec, step, at, AskForTurn(control, spec.id), HandOver(control, spec.id))
    assert all(isinstance(done, StepEffect) and done.commits == 1 for done in results), results
    committed = [
        kind for kind, one in zip(stream.answers.kinds, stream.answers.given, strict=True) if one.outcome == "committed"
    ]
    assert committed == [*["manifest_replacement"] * 3, "snapshot_expiry"], stream.answers
    assert expired.files_before - expired.files_after == 100 and expired.conflicts == 0, expired
    left = [one for one in range(150) if one % 10 > 2] + list(range(150, stream.landed))
    assert sorted(row["id"] for row in sql(f"SELECT id FROM {name}")) == left == landed_offsets(open_table(spec, at))
    sql(f"DELETE FROM {name} WHERE id % 10 = 3")
    left = [one for one in left if one % 10 != 3]
    assert sorted(row["id"] for row in sql(f"SELECT id FROM {name}")) == left == landed_offsets(open_table(spec, at))
    totals = sql(f"SELECT summary FROM {name}.snapshots ORDER BY committed_at DESC LIMIT 1")[0]["summary"]
    deleted = int(totals["total-position-deletes"])
    assert int(totals["total-records"]) - deleted == len(left), totals
    lander(spec, at, 9).land(stream.landed, stream.landed + 1)
    assert open_table(spec, at).read_ledger().coverage == offsets(0, stream.landed + 1)


def test_of_two_compactions_at_once_one_does_it(at: Places, act: Act) -> None:
    spec = iceberg("twice.orders")
    small_commits(spec, at, 20)
    before = content(spec, at)
    results = act("compact", spec, compaction(spec), times=2)
    done = [result for result in results if isinstance(result, StepEffect) and result.files_before == 20]
    others = [result for result in results if result not in done]
    assert len(done) == 1, results
    assert all(result == StepEffect() or result[0] == "StepLostError" for result in others), results
    assert content(spec, at) == before and live_files_of(spec, at) == 1


def test_manifests_are_rewritten_and_the_entry_carried(at: Places, act: Act) -> None:
    spec = iceberg("manifests.orders", "city")
    small_commits(spec, at, 45)
    before = content(spec, at)
    done = act("rewrite_manifests", spec)
    assert isinstance(done, StepEffect), done
    assert (done.files_before, done.files_after, done.commits) == (4, 1, 1), "the small ones are left to the stream"
    assert content(spec, at) == before
    assert newest_entry(spec, at).kind == "carry"
    assert act("rewrite_position_deletes", spec).is_nothing
    lander(spec, at).land(45, 46)
    assert content(spec, at).rows == 46


def test_a_dropped_table_is_said_to_be_gone(at: Places, act: Act) -> None:
    spec = iceberg("dropped.orders")
    small_commits(spec, at, 2)
    open_catalog(at).drop_table(("dropped", "orders"))
    for kind in ("compact", "rewrite_manifests", "rewrite_position_deletes"):
        name, text = act(kind, spec, compaction(spec))
        assert name == "TableGoneError" and "iceberg:dropped.orders does not exist any more" in text


def test_spark_reads_a_maintained_delta_table(at: Places, pool: ProcessPoolExecutor) -> None:
    spec = TableSpec(
        format="delta",
        name="maintained.orders",
        partition_by=("city",),
        properties={"delta.deletedFileRetentionDuration": "interval 0 hours"},
    )
    small_commits(spec, at, 30)
    engine, before = DeltaEngine(at), content(spec, at)
    for order in ((), ("id", "at")):
        for city in ("city 0", "city 1", "city 2"):
            step: Compact = compaction(spec, partition={"city": city}, order_by=order)
            assert engine.compact(spec, step).is_nothing is bool(order)
    assert engine.vacuum(spec, Vacuum(table=spec.id, reason="a test", mode="lite", retention_seconds=0)).files_before == 30
    lander(spec, at).land(30, 31)
    engine.checkpoint_log(spec, CheckpointLog(table=spec.id, reason="a test"))
    assert engine.clean_log(spec, CleanLog(table=spec.id, reason="a test", before_version=36)).removed
    source = f"delta.`{at.delta_path(spec)}`"
    found = pool.submit(_sql, f"SELECT _kafka.offset AS offset FROM {source}").result(timeout=HANGS_SECONDS)
    assert sorted(row["offset"] for row in found) == list(range(31))
    filtered = pool.submit(_sql, f"SELECT id FROM {source} WHERE id BETWEEN 4 AND 7 AND city = 'city 1'").result(HANGS_SECONDS)
    assert sorted(row["id"] for row in filtered) == [4, 7]
    assert before.rows == 30
