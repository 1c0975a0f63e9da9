"""A commit that is put into the Delta log without deltalake: the same to every reader, and never over another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake.table import TableFeatures
from deltalake.transaction import AddAction
from tests.support.tables.local_tables import SCHEMA, Lander, draft, genesis, landed_offsets, lander, make_table, rows

from lakebound.errors import CommitRefusedError
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.delta.append import commit_properties
from lakebound.tables.delta.open import open_at
from lakebound.tables.delta.table import DeltaLakeTable
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile, open_table

SPEC = TableSpec(format="delta", name="shop.orders", partition_by=("city",))
NASTY = "a b/c=d%20é?#:'{}^*"


def actions(folder: Path, version: int) -> dict[str, Any]:
    """Return the actions of a commit by name; of each, what a writer's own clock and name have no part in."""
    own = {"timestamp", "engineInfo", "clientVersion", "modificationTime", "isBlindAppend", "userMetadata"}
    found: dict[str, Any] = {}
    for line in (folder / "_delta_log" / f"{version:020d}.json").read_text().splitlines():
        ((name, body),) = json.loads(line).items()
        found[name] = {key: value for key, value in body.items() if key not in own and value is not None}
    return found


@pytest.fixture
def app(at: Places) -> Lander:
    make_table(SPEC, at)
    return lander(SPEC, at)


def nasty_files(app: Lander, start: int) -> list[DataFile]:
    """Write one file whose partition value needs every kind of quoting."""
    table = rows(start, start + 5)
    city = table.schema.get_field_index("city")
    return write_data_files(table.set_column(city, "city", pa.array([NASTY] * 5)), app.table.layout(), f"batch-{start}")


def test_it_is_what_deltalake_would_have_written(app: Lander, at: Places) -> None:
    (file,) = nasty_files(app, 0)
    committed = app.land(0, 5, [file])
    folder = at.delta_path(SPEC)
    stats = actions(folder, 1)["add"]["stats"]
    added = AddAction(file.path.relative_to(at.folder(SPEC)), file.size_bytes, dict(file.partition), 0, True, stats)
    handle = open_at(at.folder(SPEC))
    properties = commit_properties(committed.entry, actions(folder, 1)["txn"]["version"] + 1)
    handle.create_write_transaction([added], "append", handle.schema(), ["city"], commit_properties=properties)
    ours, theirs = actions(folder, 1), actions(folder, 2)
    assert ours["add"]["path"] == theirs["add"]["path"]
    assert ours["txn"].pop("version") + 1 == theirs["txn"].pop("version")
    assert ours == theirs


def test_readers_find_its_files(app: Lander) -> None:
    app.land(0, 5, nasty_files(app, 0))
    assert landed_offsets(app.table) == list(range(5))


def test_it_is_never_put_over_another_commit(app: Lander, at: Places) -> None:
    other = lander(SPEC, at)
    app.land(0, 5)
    folder = at.delta_path(SPEC)
    before = (folder / "_delta_log" / f"{1:020d}.json").read_bytes()
    with pytest.raises(CommitRefusedError, match="version 1 is another commit's"):
        other.table.commit([], draft(5, 10))
    assert (folder / "_delta_log" / f"{1:020d}.json").read_bytes() == before
    assert not list(folder.glob("_delta_log/*.tmp"))


def test_a_table_with_a_feature_that_asks_nothing_of_an_append_gets_the_same(app: Lander, at: Places) -> None:
    app.land(0, 5)
    handle = open_at(at.folder(SPEC))
    handle.alter.add_feature(TableFeatures.ChangeDataFeed, allow_protocol_versions_increase=True)
    second = lander(SPEC, at)
    second.land(5, 10)
    zombie = app.table
    assert '"engineInfo":"lakebound-' in (at.delta_path(SPEC) / "_delta_log" / f"{3:020d}.json").read_text()
    with pytest.raises(CommitRefusedError):
        zombie.commit([], draft(5, 10))
    assert landed_offsets(second.table) == list(range(10))


def test_an_object_that_has_not_read_the_ledger_commits_nothing(at: Places) -> None:
    table = open_table(SPEC, at)
    assert isinstance(table, DeltaLakeTable)
    table.create(SCHEMA, genesis())
    with pytest.raises(CommitRefusedError, match="was not read"):
        table.commit([], draft(0, 1))
