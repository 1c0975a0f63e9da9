"""The history of real tables: what each commit says, what is read of it, and where it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import PIPELINE, Lander, lander, make_table, offsets
from tests.support.tables.maintained import compaction
from tests.support.tables.restoring import put_back

from lakebound.control.folder import ControlFolder
from lakebound.errors import BadEntryError
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.history import History, read_history
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

DELTA = TableSpec(format="delta", name="shop.orders")
ICEBERG = TableSpec(format="iceberg", name="shop.orders")


@pytest.fixture
def app(spec: TableSpec, at: Places) -> Lander:
    make_table(spec, at)
    return lander(spec, at)


def history_of(spec: TableSpec, at: Places) -> History:
    history = read_history(spec, at.read_only())
    assert history is not None
    return history


def compact(spec: TableSpec, at: Places) -> None:
    if spec.format == "delta":
        DeltaEngine(at).compact(spec, compaction(spec))
    else:
        FileRewriter(at, ControlFolder(at.home, PIPELINE)).compact(spec, compaction(spec))


def offsets_in(history: History, version: str) -> list[int]:
    """Return the offsets of the rows in the files that a commit added, read by pyarrow."""
    contents = (pa.BufferReader(file.path.read()) for file in history.added(version))
    found = [pq.read_table(content, columns=["_kafka"])["_kafka"].to_pylist() for content in contents]
    return sorted(row["offset"] for part in found for row in part)


def test_a_table_that_is_not_there_has_no_history(spec: TableSpec, at: Places) -> None:
    assert read_history(spec, at.read_only()) is None
    assert not at.root.is_local or not at.root.path.exists(), "looking makes nothing"


def test_each_commit_says_what_it_is(app: Lander, spec: TableSpec, at: Places) -> None:
    for start in range(0, 40, 10):
        app.land(start, start + 10)
    compact(spec, at)
    commits = list(history_of(spec, at).commits())
    assert [commit.kind for commit in commits] == ["carry", "land", "land", "land", "land", "genesis"]
    assert [commit.operation for commit in commits[:5]] == ["replace", *["append"] * 4]
    assert [commit.number for commit in commits] == sorted((commit.number for commit in commits), reverse=True)
    assert [commit.parent for commit in commits] == [*(commit.version for commit in commits[1:]), None]
    assert [commit.parent_number for commit in commits] == [*(commit.number for commit in commits[1:]), None]
    assert all(commit.committed_at_ms > 0 for commit in commits)
    assert [commit.entry.coverage for commit in commits if commit.entry is not None][1] == offsets(0, 40)


def test_the_files_of_a_commit_hold_its_new_rows(app: Lander, spec: TableSpec, at: Places) -> None:
    app.land(0, 10)
    app.land(10, 15)
    compact(spec, at)
    history = history_of(spec, at)
    compacted, second, first, genesis = (commit.version for commit in history.commits())
    assert (offsets_in(history, first), offsets_in(history, second)) == (list(range(10)), list(range(10, 15)))
    assert [file.rows for file in history.added(second)] == [5]
    assert list(history.added(compacted)) == list(history.added(genesis)) == []


def test_a_table_that_is_open_has_the_same_history(app: Lander, spec: TableSpec, at: Places) -> None:
    app.land(0, 10)
    app.land(10, 20)
    for table in (app.table, open_table(spec, at)):
        own, read = table.history(), history_of(spec, at)
        assert own.current == read.current
        assert list(own.commits()) == list(read.commits())
        assert list(own.versions()) == list(read.versions())
        assert list(own.entries()) == list(read.entries()) == list(table.entries())


def test_a_handle_does_not_see_what_came_later(app: Lander, spec: TableSpec, at: Places) -> None:
    other = lander(spec, at)
    app.land(0, 10)
    before = app.table.history()
    other.land(10, 20)
    assert next(before.entries()).entry.coverage == offsets(0, 10)
    assert next(history_of(spec, at).entries()).entry.coverage == offsets(0, 20)


def test_what_a_rewind_undid_is_among_the_commits_and_not_on_the_ancestry(app: Lander, spec: TableSpec, at: Places) -> None:
    for start in range(0, 30, 10):
        app.land(start, start + 10)
    left = history_of(spec, at).current
    put_back(spec, at, 10)
    history = history_of(spec, at)
    assert [commit.kind for commit in history.commits()] == ["reset", "land", "land", "land", "genesis"]
    assert [commit.kind for commit in history.ancestry()] == ["reset", "land", "genesis"]
    assert [one.entry.kind for one in history.entries()] == ["reset", "land", "genesis"]
    assert left not in [commit.version for commit in history.ancestry()]
    assert left in [version.version for version in history.versions()]
    assert next(history.ancestry(left)).version == left


def test_a_bad_entry_is_told_to_who_asks_for_it_alone(app: Lander, spec: TableSpec, at: Places) -> None:
    kept = app.land(0, 10)
    app.table.commit([], kept.entry.model_copy(update={"kind": "nonsense"}))
    bad, good, _ = history_of(spec, at).commits()
    assert good.kind == "land" and good.entry is not None
    with pytest.raises(BadEntryError):
        _ = bad.entry
    with pytest.raises(BadEntryError):
        _ = bad.kind


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the files of the log that were read whole."""
    names: list[str] = []
    read = Location.read

    def noted(self: Location) -> bytes:
        names.append(self.name)
        return read(self)

    monkeypatch.setattr(Location, "read", noted)
    return names


def test_the_newest_entry_of_a_delta_table_is_found_by_the_beginning_of_one_file(at: Places, opened: list[str]) -> None:
    make_table(DELTA, at)
    app = lander(DELTA, at)
    for start in range(0, 40, 10):
        app.land(start, start + 10)
    for number in range(4):
        (at.delta_path(DELTA) / "_delta_log" / f"{number:020d}.json").write_text("no commit")
    opened.clear()
    assert next(history_of(DELTA, at).entries()).entry.coverage == offsets(0, 40)
    assert opened == []


def test_a_delta_history_ends_at_the_first_gap(at: Places) -> None:
    make_table(DELTA, at)
    app = lander(DELTA, at)
    for start in range(0, 50, 10):
        app.land(start, start + 10)
    (at.delta_path(DELTA) / "_delta_log" / f"{2:020d}.json").unlink()
    for history in (history_of(DELTA, at), app.table.history()):
        assert [commit.version for commit in history.commits()] == ["5", "4", "3"]
        assert [commit.version for commit in history.ancestry()] == ["5", "4", "3"]
    assert list(history_of(DELTA, at).added("2")) == []


def test_a_delta_restore_that_names_itself_ends(at: Places) -> None:
    make_table(DELTA, at)
    lander(DELTA, at).land(0, 10)
    info = {"timestamp": 1, "operation": "RESTORE", "operationParameters": {"version": "2"}}
    (at.delta_path(DELTA) / "_delta_log" / f"{2:020d}.json").write_text(json.dumps({"commitInfo": info}) + "\n")
    assert [commit.version for commit in history_of(DELTA, at).ancestry()] == ["2", "1", "0"]


def test_a_delta_restore_by_hand_undoes_rows_and_no_entry(at: Places) -> None:
    """Who mends the table must know the highest epoch that was ever there."""
    make_table(DELTA, at)
    app = lander(DELTA, at)
    for start in range(0, 30, 10):
        app.land(start, start + 10)
    DeltaTable(str(at.delta_path(DELTA))).restore(1)
    history = history_of(DELTA, at)
    assert [commit.version for commit in history.ancestry()] == ["4", "1", "0"]
    assert [one.version for one in history.entries()] == ["3", "2", "1", "0"]


def test_an_iceberg_ancestry_ends_at_what_has_expired(at: Places) -> None:
    make_table(ICEBERG, at)
    app = lander(ICEBERG, at)
    for start in range(0, 40, 10):
        app.land(start, start + 10)
    table = foreign_iceberg(ICEBERG, at)
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    table.maintenance.expire_snapshots().by_ids(ids[1:3]).commit()
    history = history_of(ICEBERG, at)
    assert [commit.version for commit in history.commits()] == [str(ids[4]), str(ids[3]), str(ids[0])]
    assert [commit.version for commit in history.ancestry()] == [str(ids[4]), str(ids[3])]
    assert list(history.ancestry())[-1].parent_number is None
    assert list(history.added(str(ids[1]))) == []
