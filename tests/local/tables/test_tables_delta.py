"""What is particular to Delta: the log stays cheap, and statistics of ``_kafka`` stay on."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.tables.local_tables import SCHEMA, Lander, genesis, landed_offsets, lander, make_table, rows
from tests.support.waiting import HANGS_SECONDS

from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.draft import SCRATCH, scratch_folder
from lakebound.tables.delta.log import last_checkpoint, statistics_columns, with_kafka_statistics
from lakebound.tables.delta.open import open_at
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, open_table


def spec(**properties: str) -> TableSpec:
    return TableSpec(format="delta", name="shop.orders", properties=properties)


def landed(at: Places, table_spec: TableSpec, commits: int) -> Lander:
    make_table(table_spec, at)
    app = lander(table_spec, at)
    for start in range(commits):
        app.land(start, start + 1)
    return app


def test_the_protocol_is_plain(at: Places) -> None:
    make_table(spec(), at)
    protocol = open_at(at.folder(spec())).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_a_log_checkpoint_is_written_when_due_and_commits_go_on(at: Places) -> None:
    table_spec = spec(**{"delta.checkpointInterval": "5"})
    app = landed(at, table_spec, 3)
    folder = at.folder(table_spec)
    app.table.keep_cheap()
    assert last_checkpoint(folder) == -1
    for start in range(3, 12):
        app.land(start, start + 1)
    app.table.keep_cheap()
    assert last_checkpoint(folder) == 12
    app.table.keep_cheap()
    assert last_checkpoint(folder) == 12
    for start in range(12, 15):
        assert app.land(start, start + 1).attempts == 1
    assert landed_offsets(app.table) == list(range(15))
    assert app.table.read_ledger() == app.view


def test_a_checkpoint_beside_the_commits_takes_no_fence_away(at: Places) -> None:
    """The handle that keep_cheap prepared is newer than a later application's ``open`` entry."""
    table_spec = spec(**{"delta.checkpointInterval": "1"})
    app = landed(at, table_spec, 3)
    second = lander(table_spec, at, epoch=2)
    second.open()
    app.table.keep_cheap()
    with pytest.raises(Exception, match="superseded by epoch 2"):
        app.land(3, 4)
    assert landed_offsets(app.table) == [0, 1, 2]


def test_checkpoints_are_written_beside_the_commits(at: Places) -> None:
    table_spec = spec(**{"delta.checkpointInterval": "3"})
    app = landed(at, table_spec, 1)
    done = threading.Event()

    def keep() -> int:
        count = 0
        while not done.is_set():
            app.table.keep_cheap()
            count += 1
        return count

    with ThreadPoolExecutor(1) as pool:
        kept = pool.submit(keep)
        try:
            attempts = {app.land(start, start + 1).attempts for start in range(1, 40)}
        finally:
            done.set()
        assert kept.result(timeout=HANGS_SECONDS) > 0
    assert attempts == {1}
    assert landed_offsets(app.table) == list(range(40))
    assert last_checkpoint(at.folder(table_spec)) > 3


def test_no_commit_writes_a_checkpoint_or_cleans_the_log(at: Places) -> None:
    app = landed(at, spec(**{"delta.checkpointInterval": "2"}), 6)
    names = sorted(path.name for path in (at.delta_path(app.table.spec) / "_delta_log").iterdir())
    assert names == [f"{version:020d}.json" for version in range(7)]


def test_statistics_of_kafka_stand_in_the_log(at: Places) -> None:
    app = landed(at, spec(), 0)
    app.land(0, 10)
    text = (at.delta_path(app.table.spec) / "_delta_log" / f"{1:020d}.json").read_text()
    added = next(json.loads(line)["add"] for line in text.splitlines() if '"add"' in line)
    statistics = json.loads(added["stats"])
    assert statistics["numRecords"] == 10
    assert statistics["minValues"]["_kafka"]["offset"] == 0 and statistics["maxValues"]["_kafka"]["offset"] == 9
    assert statistics["minValues"]["_kafka"]["topic"] == statistics["maxValues"]["_kafka"]["topic"] == "orders"
    assert "items" not in statistics["minValues"]


def wide(columns: int) -> pa.Schema:
    return pa.schema([*(pa.field(f"c{n}", pa.int64()) for n in range(columns)), pa.field("_kafka", KAFKA_TYPE)])


KAFKA = {("_kafka", field.name) for field in KAFKA_TYPE}


@pytest.mark.parametrize(
    "properties",
    [
        {},
        {"delta.dataSkippingNumIndexedCols": "0"},
        {"delta.dataSkippingNumIndexedCols": "-1"},
        {"delta.dataSkippingStatsColumns": "c1, c2"},
        {"delta.dataSkippingStatsColumns": "_kafka"},
    ],
)
def test_statistics_of_kafka_cannot_be_switched_off(properties: dict[str, str]) -> None:
    schema = wide(60)
    kept = with_kafka_statistics(schema, properties)
    columns = statistics_columns(schema, dict(kept))
    assert columns >= KAFKA
    assert set(properties) <= set(kept)


def test_properties_that_keep_them_stay_as_they_are() -> None:
    assert with_kafka_statistics(wide(3), {"owner": "me"}) == {"owner": "me"}
    chosen = {"delta.dataSkippingStatsColumns": "c1,_kafka"}
    assert with_kafka_statistics(wide(3), chosen) == chosen
    assert statistics_columns(wide(3), dict(chosen)) == KAFKA | {("c1",)}


def test_properties_of_the_user_reach_the_table(at: Places) -> None:
    table_spec = spec(**{"delta.logRetentionDuration": "interval 3 days", "team": "shop"})
    open_table(table_spec, at).create(SCHEMA, genesis())
    found = open_at(at.folder(table_spec)).metadata().configuration
    assert found["delta.logRetentionDuration"] == "interval 3 days" and found["team"] == "shop"


def test_a_partition_by_negative_decimals_keeps_nobody_from_the_records_places(at: Places) -> None:
    table_spec = TableSpec(format="delta", name="shop.orders", partition_by=("price",))
    table = open_table(table_spec, at)
    table.create(SCHEMA.append(pa.field("price", pa.decimal128(5, 2))), genesis())
    app = lander(table_spec, at)
    prices = pa.array([Decimal("-0.50"), Decimal("-1.25"), None], pa.decimal128(5, 2))
    priced = rows(0, 3).append_column("price", prices)
    app.land(0, 3, write_data_files(priced, table.layout(), "prices"))
    assert landed_offsets(open_table(table_spec, at)) == [0, 1, 2]


def test_a_draft_is_begun_while_another_one_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who ends a draft removes the folder of all drafts when it is empty: between the two folders that the other one makes."""
    make, ended = os.mkdir, []

    def end_another_draft(path: Path, *arguments: Any) -> None:
        if path.parent.name == SCRATCH and path.parent.exists() and not ended:
            ended.append(path.parent)
            path.parent.rmdir()
        make(path, *arguments)

    monkeypatch.setattr(os, "mkdir", end_another_draft)
    with scratch_folder(Location(str(tmp_path))) as scratch:
        assert scratch.is_dir() and ended == [scratch.parent]
    assert list(tmp_path.iterdir()) == []
