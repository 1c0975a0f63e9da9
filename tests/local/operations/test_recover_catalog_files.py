"""A catalog that is put back, or forgets a table, among the files of every day: nothing forks, nothing healthy is refused."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest
from tests.support.tables.local_tables import SCHEMA, draft, genesis, landed_offsets, lander
from tests.support.tables.older_catalogs import catalog_file, copied, land_many, named, put_back
from tests.support.tables.recovering import ICEBERG, Case, case_fixture  # noqa: F401

from lakebound.control.desired import Desired, DesiredState, change_desired, read_desired
from lakebound.control.lease import Lease
from lakebound.errors import CatalogBehindError, CommitRefusedError, ForgottenTableError
from lakebound.operations.recovery.takeover import DesiredChangedError, taken_over
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.metadata import change
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.table import open_table


def rows(case: Case) -> int:
    return len(landed_offsets(open_table(ICEBERG, case.at)))


def test_a_catalog_that_is_put_back_under_a_living_handle_is_refused(case: Case, tmp_path: Path) -> None:
    app = lander(ICEBERG, case.at, epoch=5)
    app.open()
    app.land(30, 31)
    older = copied(case, tmp_path)
    for offset in range(31, 36):
        app.land(offset, offset + 1)
    put_back(case, older)
    with pytest.raises(CatalogBehindError):
        app.table.read_ledger()
    before = named(case)
    for commit in (
        lambda: open_table(ICEBERG, case.at).set_properties({"a": "b"}, None),
        lambda: open_table(ICEBERG, case.at).restore("1", genesis(9)),
    ):
        with pytest.raises(CatalogBehindError):
            commit()
    assert named(case) == before


def test_a_table_that_the_catalog_has_forgotten_is_not_made_anew(case: Case) -> None:
    land_many(case, 3)
    before, files = named(case), sorted(named(case).parent.iterdir())
    with closing(sqlite3.connect(catalog_file(case))) as catalog, catalog:
        catalog.execute("delete from iceberg_tables where table_name = 'orders'")
    table = open_table(ICEBERG, case.at)
    assert not table.exists()
    with pytest.raises(ForgottenTableError, match=rf"{before.name}.*move the folder aside"):
        table.create(SCHEMA, genesis(9))
    assert sorted(before.parent.iterdir()) == files
    catalog_again = open_catalog(case.at)
    catalog_again.register_table((ICEBERG.namespace, ICEBERG.short_name), f"file://{before}")
    assert rows(case) == 33


def test_what_a_killed_writer_left_of_the_first_commit_stops_no_start(case: Case) -> None:
    first = min(named(case).parent.glob("*.metadata.json"))
    with closing(sqlite3.connect(catalog_file(case))) as catalog, catalog:
        catalog.execute("delete from iceberg_tables where table_name = 'orders'")
    for file in first.parent.glob("*.metadata.json"):
        if file != first:
            file.unlink()
    open_table(ICEBERG, case.at).create(SCHEMA, genesis(9))


@pytest.mark.parametrize("kind", ["damaged gzip", "torn gzip", "null", "folder"])
def test_a_file_beyond_the_pointer_that_is_no_metadata_refuses_nothing(case: Case, kind: str) -> None:
    pointer = named(case)
    left = pointer.with_name(f"{int(pointer.name[:5]) + 1:05d}-11111111-1111-1111-1111-111111111111.gz.metadata.json")
    packed = gzip.compress(pointer.read_bytes())
    if kind == "folder":
        left.mkdir()
    else:
        contents = {"damaged gzip": packed[:200] + bytes(len(packed) - 200), "torn gzip": packed[:200], "null": b"null"}
        left.write_bytes(contents[kind])
    assert open_table(ICEBERG, case.at).read_ledger().version


def test_a_history_whose_old_snapshots_expired_is_one_history(case: Case, tmp_path: Path) -> None:
    kept = {"write.metadata.delete-after-commit.enabled": "false", "write.metadata.previous-versions-max": "5"}
    open_table(ICEBERG, case.at).set_properties(kept, None)
    older = copied(case, tmp_path)
    land_many(case, 12)
    catalog = open_catalog(case.at)
    change(
        catalog, ICEBERG, case.at, lambda b: {**b, "snapshots": b["snapshots"][-2:], "snapshot-log": b["snapshot-log"][-2:]}, 3
    )
    newest = named(case)
    put_back(case, older)
    case.apply("repoint", case.plan("repoint"))
    assert named(case) == newest


@pytest.mark.parametrize("meanwhile", ["another commit", "the catalog put back"])
def test_a_commit_that_lost_leaves_nothing_that_a_repair_could_choose(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    older = copied(case, tmp_path)
    land_many(case, 3)
    winner, loser = lander(ICEBERG, case.at, epoch=5), lander(ICEBERG, case.at, epoch=5)
    files = loser.write(40, 41)
    swap = LedgerCatalog._swap

    def raced(catalog: LedgerCatalog, *arguments: object) -> None:
        monkeypatch.setattr(LedgerCatalog, "_swap", swap)
        if meanwhile == "another commit":
            winner.land(33, 34)
        else:
            put_back(case, older)
        swap(catalog, *arguments)  # type: ignore[arg-type]

    newest = named(case)
    monkeypatch.setattr(LedgerCatalog, "_swap", raced)
    with pytest.raises(CommitRefusedError):
        loser.table.commit(files, draft(40, 41, 5))
    if meanwhile == "another commit":
        newest = named(case)
        put_back(case, older)
    case.apply("repoint", case.plan("repoint"))
    assert named(case) == newest
    assert rows(case) == (34 if meanwhile == "another commit" else 33)


@pytest.mark.parametrize("state", ["held", "stopped"])
def test_what_a_person_wants_while_a_repair_waits_stands(case: Case, state: DesiredState) -> None:
    change_desired(case.control, "held", reason="crash loop", by="ada")
    planned_on = read_desired(case.control)
    change_desired(case.control, state, reason="bad data, do not start", by="bob")
    with pytest.raises(DesiredChangedError, match=f"by bob to {state} .bad data"), taken(case, planned_on):
        pytest.fail("it was taken over")
    found = read_desired(case.control)
    assert (found.state, found.by) == (state, "bob")
    with taken(case, found):
        pass
    assert read_desired(case.control).by == "bob"


def taken(case: Case, seen: Desired) -> AbstractContextManager[Lease]:
    return taken_over(case.spec, case.at, by="ada", reason="a repair", seen=seen)


def test_a_desired_state_that_an_older_version_wrote_gets_its_sign(case: Case) -> None:
    change_desired(case.control, "stopped", by="ada")
    case.control.desired_sign.unlink()
    assert read_desired(case.control).state == "stopped"
    case.control.desired.unlink()
    assert read_desired(case.control).state == "held"
