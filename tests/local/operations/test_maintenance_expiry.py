"""Expiry of Iceberg snapshots on real tables: exactly what was asked for goes, and nothing that a kept snapshot needs."""

from __future__ import annotations

import itertools
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import draft, genesis, landed_offsets, lander, make_table, offsets
from tests.support.tables.maintained import content, rewrite_iceberg, small_commits

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.errors import CommitRefusedError
from lakebound.ledger.entry import ENTRY_KEY, decode, encode
from lakebound.operations.maintenance.engines import TableGoneError
from lakebound.operations.maintenance.iceberg.expiry import CollectionForbiddenError, expire
from lakebound.operations.maintenance.iceberg.reach import needed
from lakebound.operations.maintenance.steps import ExpireSnapshots, StepEffect
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg import append as iceberg_append
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.expirable import expirable, with_newest_entry
from lakebound.tables.iceberg.local_files import local_path
from lakebound.tables.iceberg.metadata import metadata_location, read_body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.table import VersionGoneError, open_table

SPEC = TableSpec(format="iceberg", name="shop.orders")
ORDERS = [*itertools.permutations(range(4))]


def expire_ids(at: Places, ids: list[int]) -> StepEffect:
    turn = AskForTurn(ControlFolder(at.home, "shop"), SPEC.id)
    return expire(SPEC, ExpireSnapshots(table=SPEC.id, reason="a test", snapshot_ids=tuple(ids)), at, turn)


def snapshot_ids(at: Places) -> list[int]:
    return [snapshot.snapshot_id for snapshot in foreign_iceberg(SPEC, at).metadata.snapshots]


def body_of(at: Places) -> dict[str, object]:
    location = metadata_location(open_catalog(at), SPEC)
    assert location is not None
    return read_body(at.file_at(location))


def files_on_disk(at: Places) -> set[Path]:
    root = local_path(foreign_iceberg(SPEC, at).location())
    return {path for path in root.rglob("*") if path.is_file() and not path.name.endswith(".metadata.json")}


def needed_files(at: Places) -> set[Path]:
    return {path for path in map(local_path, needed(body_of(at), at)) if not path.name.endswith(".metadata.json")}


def test_exactly_the_asked_snapshots_go_and_the_others_stay_readable(at: Places) -> None:
    small_commits(SPEC, at, 22)
    rewrite_iceberg(SPEC, at)
    before, ids = content(SPEC, at), snapshot_ids(at)
    # Far older than the table's own properties would keep them, were they asked.
    foreign_iceberg(SPEC, at).transaction().set_properties({"history.expire.max-snapshot-age-ms": "1"}).commit_transaction()
    asked = [*ids[3:10], *ids[12:20:2]]
    done = expire_ids(at, asked)
    assert snapshot_ids(at) == [number for number in ids if number not in asked]
    assert (done.files_before - done.files_after, done.commits, done.conflicts) == (len(asked), 1, 0)
    assert done.bytes_removed > 0 and done.removed
    table = open_table(SPEC, at)
    for version in table.history().versions():
        assert table.look_back(version.version).missing_files == ()
    assert len(list(table.history().versions())) == len(ids) - len(asked), (
        "the log of what was current lost more than was asked"
    )
    assert content(SPEC, at) == before


@pytest.mark.parametrize("seed", range(3 if LONG_FORM else 1))
def test_no_file_too_many_and_none_too_few(seed: int, at: Places) -> None:
    """Commits, compactions, rewinds and expiries in a random order: what is on disk is what the kept snapshots need."""
    chance, landed, epoch = random.Random(seed), 0, 1
    make_table(SPEC, at)
    for _ in range(6):
        app = lander(SPEC, at, epoch)
        for _ in range(chance.randint(1, 8)):
            app.land(landed, landed + 1)
            landed += 1
        if chance.random() < 0.4:
            rewrite_iceberg(SPEC, at)
        if chance.random() < 0.3:
            back = chance.choice(
                [one for one in open_table(SPEC, at).history().versions() if one.entry and one.entry.kind == "land"]
            )
            assert back.entry is not None
            epoch += 1
            reset = genesis(epoch).model_copy(update={"kind": "reset", "coverage": back.entry.coverage})
            open_table(SPEC, at).restore(back.version, reset)
            landed = back.entry.coverage["orders"].partitions[0][0][1]
        ids = snapshot_ids(at)
        expire_ids(at, chance.sample(ids, chance.randint(0, len(ids) - 1)))
        assert files_on_disk(at) == needed_files(at)
    assert landed_offsets(open_table(SPEC, at)) == list(range(landed))


@pytest.mark.parametrize("order", ORDERS if LONG_FORM else ORDERS[::7], ids=str)
def test_of_a_fork_each_branch_keeps_what_it_needs(order: tuple[int, ...], at: Places) -> None:
    """A kept snapshot has a kept child and an expired one, whose own child expires at another time: any order is right."""
    small_commits(SPEC, at, 2)
    forked = next(iter(open_table(SPEC, at).history().versions()))
    small_commits(SPEC, at, 2, start=2)
    rewrite_iceberg(SPEC, at)
    abandoned = snapshot_ids(at)[-3:]
    assert forked.entry is not None
    reset = genesis(2).model_copy(update={"kind": "reset", "coverage": forked.entry.coverage})
    open_table(SPEC, at).restore(forked.version, reset)
    app = lander(SPEC, at, 3)
    app.land(2, 4)
    ids = [*abandoned, snapshot_ids(at)[-2]]
    for number in order:
        expire_ids(at, [ids[number]])
        assert files_on_disk(at) == needed_files(at)
        foreign_iceberg(SPEC, at).scan(snapshot_id=int(forked.version)).to_arrow()
    assert landed_offsets(open_table(SPEC, at)) == list(range(4))


@pytest.mark.parametrize("moment", ["before its manifests", "before its commit"])
def test_a_rewind_to_what_expires_meanwhile_is_refused(moment: str, at: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would make a child of a snapshot whose files are being deleted the current one."""
    small_commits(SPEC, at, 4)
    rewrite_iceberg(SPEC, at)
    lander(SPEC, at).land(4, 5)
    before, (_, old, *_) = content(SPEC, at), snapshot_ids(at)
    name = "snapshot" if moment == "before its manifests" else "commit_table"
    owner: Any = iceberg_append.SnapshotWriter if name == "snapshot" else LedgerCatalog
    real = getattr(owner, name)

    def expired_first(*args: Any) -> Any:
        monkeypatch.setattr(owner, name, real)
        assert expire_ids(at, [old]).commits == 1
        return real(*args)

    monkeypatch.setattr(owner, name, expired_first)
    reset = genesis(2).model_copy(update={"kind": "reset"})
    with pytest.raises((CommitRefusedError, VersionGoneError)):
        open_table(SPEC, at).restore(str(old), reset)
    assert getattr(owner, name) is real and old not in snapshot_ids(at)
    assert content(SPEC, at) == before
    lander(SPEC, at).land(5, 6)
    assert files_on_disk(at) >= needed_files(at)


def test_the_entry_that_counts_and_the_way_to_it_stay(at: Places) -> None:
    small_commits(SPEC, at, 5)
    landed = snapshot_ids(at)[-1]
    for _ in range(3):
        rewrite_iceberg(SPEC, at)
    before = content(SPEC, at)
    expire_ids(at, snapshot_ids(at))
    assert snapshot_ids(at)[0] == landed and len(snapshot_ids(at)) == 4
    assert content(SPEC, at) == before
    assert expire_ids(at, snapshot_ids(at)).is_nothing


def test_what_a_tag_names_stays(at: Places) -> None:
    small_commits(SPEC, at, 6)
    tagged = snapshot_ids(at)[2]
    foreign_iceberg(SPEC, at).manage_snapshots().create_tag(tagged, "audit").commit()
    expire_ids(at, snapshot_ids(at))
    assert tagged in snapshot_ids(at)


def test_expiry_beside_a_stream_changes_nothing_that_it_landed(at: Places) -> None:
    app = small_commits(SPEC, at, 20)
    app.attempts = 12
    ended = threading.Event()

    def stream() -> None:
        for offset in range(20, 40):
            app.land(offset, offset + 1)
        ended.set()

    streaming = threading.Thread(target=stream)
    streaming.start()
    results = []
    while not ended.is_set():
        results.append(expire_ids(at, snapshot_ids(at)[:-8]))
    streaming.join()
    assert sum(done.commits for done in results) >= 3
    table = open_table(SPEC, at)
    assert landed_offsets(table) == list(range(40))
    assert files_on_disk(at) >= needed_files(at)


def test_metadata_files_do_not_pile_up(at: Places) -> None:
    small_commits(SPEC, at, 24)
    for number in snapshot_ids(at)[:21]:
        expire_ids(at, [number])
    body = body_of(at)
    kept = list((local_path(str(body["location"])) / "metadata").glob("*.metadata.json"))
    assert len(kept) == 21
    lander(SPEC, at).land(24, 25)
    assert content(SPEC, at).rows == 25


def test_a_table_that_forbids_it_and_one_that_is_gone(at: Places) -> None:
    small_commits(SPEC, at, 3)
    ids = snapshot_ids(at)
    foreign_iceberg(SPEC, at).transaction().set_properties({"gc.enabled": "false"}).commit_transaction()
    with pytest.raises(CollectionForbiddenError, match=r"gc\.enabled"):
        expire_ids(at, ids[:1])
    open_catalog(at).drop_table(("shop", "orders"))
    with pytest.raises(TableGoneError):
        expire_ids(at, ids[:1])


def test_of_an_unreadable_manifest_nothing_is_deleted(at: Places) -> None:
    small_commits(SPEC, at, 5)
    ids, table = snapshot_ids(at), foreign_iceberg(SPEC, at)
    first = table.metadata.snapshots[1]
    local_path(first.manifest_list).write_bytes(b"torn")
    before = files_on_disk(at)
    done = expire_ids(at, ids[1:2])
    assert "cannot be read" in done.note and files_on_disk(at) == before and ids[1] not in snapshot_ids(at)


def test_a_carried_entry_alone_protects_the_whole_way() -> None:
    chain = [{"snapshot-id": n, "parent-snapshot-id": n - 1, "summary": {}} for n in range(2, 6)]
    body = {"snapshots": chain, "current-snapshot-id": 5, "refs": {"main": {"snapshot-id": 5}}}
    assert expirable(range(10), body, "t") == set()


def test_a_rewrite_that_was_overtaken_carries_the_entry_of_the_snapshot_that_it_then_follows() -> None:
    def snapshot(number: int, kind: str, end: int, **changes: str) -> dict[str, Any]:
        entry = draft(0, end, kind=kind).model_copy(update={"coverage": offsets(0, end), "range": {}, "commit": f"c{number}"})
        text = encode(entry.model_copy(update=changes))
        return {"snapshot-id": number, "parent-snapshot-id": number - 1, "summary": {ENTRY_KEY: text, "operation": "replace"}}

    body = {"snapshots": [snapshot(1, "land", 10), snapshot(2, "land", 20), snapshot(3, "carry", 10, carries="c1")]}
    (first, second, made) = with_newest_entry(body, {1, 2}, "t")["snapshots"]
    assert [first, second] == body["snapshots"][:2] and made["summary"]["operation"] == "replace"
    entry = decode(made["summary"][ENTRY_KEY], "t")
    assert entry is not None and (entry.kind, entry.coverage, entry.carries) == ("carry", offsets(0, 20), "c2")
    lost = {"snapshots": body["snapshots"][2:]}
    assert with_newest_entry(lost, set(), "t") == lost, "no entry is reached: the check at the start is what refuses it"
