"""Backup beside commits, and restore: what was there is kept, nothing starts by itself, and no epoch goes back. Real tables."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.streams.command_line import lakebound
from tests.support.tables.local_tables import landed_offsets, lander
from tests.support.tables.recovering import DELTA, ICEBERG, Case, case_fixture  # noqa: F401

from lakebound.control.desired import LostDesired, change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.incidents import read_incidents
from lakebound.control.lease import acquire, read_lease, release
from lakebound.control.submission import Submission, write_submission
from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.landing.run_spec import make_run_spec
from lakebound.operations.backup import archive as archiving
from lakebound.operations.backup import restore as restoring
from lakebound.operations.backup.archive import extract, pointers_of, read_manifest, write_backup
from lakebound.operations.backup.manifest import MANIFEST, BackupError, is_safe
from lakebound.operations.backup.plan import RestoreRefusedError, plan_restore
from lakebound.operations.backup.restore import apply_restore
from lakebound.settings import load_settings
from lakebound.tables.format_rules import rules_of
from lakebound.tables.iceberg import open as catalogs
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table
from lakebound_spark.stream.opening import take_lease


def lived(case: Case) -> None:
    """Give the pipeline what an application and a person leave behind."""
    lease = acquire(case.control, "orders-g2-a", 30, above_epoch=6)
    release(case.control, lease)
    change_desired(case.control, "running", freshness="5s", by="ada")
    write_submission(case.control, Submission(app_id="orders-g2-a", generation=2))
    case.control.log("orders-g2-a").parent.mkdir()
    case.control.log("orders-g2-a").write_text("a log")
    (case.control.folder / "stop-orders-g2-a.json").write_text("{}")


def close_catalog(case: Case) -> None:
    """Close this process's catalog, as the end of a process does: a restore renames the file."""
    catalogs.open_catalog(case.at).engine.dispose()
    catalogs._open_catalog.cache_clear()


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file's content; those with SQLite's readers and writers (``-shm``, ``-wal``) come and go with these."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal"))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def restore(case: Case, source: Path) -> restoring.Restored:
    close_catalog(case)
    return apply_restore(case.settings, source, plan_restore(case.settings, source).hash, by="ada")


def test_a_backup_beside_commits_is_whole_and_private(case: Case, tmp_path: Path) -> None:
    lived(case)
    app, ended = lander(ICEBERG, case.at, epoch=5), threading.Event()

    def go_on() -> None:
        start = 30
        while not ended.is_set():
            app.land(start, start + 1)
            start += 1

    committing = threading.Thread(target=go_on)
    committing.start()
    try:
        made = [write_backup(case.settings, tmp_path / f"{number}.tar.gz") for number in range(5)]
    finally:
        ended.set()
        committing.join()
    pointers = set()
    for number, (path, manifest) in enumerate(made):
        assert path.stat().st_mode & 0o777 == 0o600
        assert read_manifest(path) == manifest
        (tmp_path / str(number)).mkdir()
        with tarfile.open(path) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python has it from 3.11.4 on
            archive.extractall(tmp_path / str(number))
        assert pointers_of(tmp_path / str(number) / "catalog.db") == manifest.iceberg_tables
        assert "00" in manifest.iceberg_tables["shop.orders"]
        pointers.add(manifest.iceberg_tables["shop.orders"])
        names = {file.path for file in manifest.files}
        assert {"catalog.db", *(f"pipelines/orders/{name}.json" for name in ("lease", "desired", "submission"))} <= names
        assert not any(
            "log" in Path(name).parts[-1] or "stop-" in name or name.endswith(".lock") for name in names - {"catalog.db"}
        )
    assert len(pointers) > 1, "commits took place meanwhile"
    assert sorted(path.name for path in tmp_path.glob(".*")) == [], "nothing is left behind"


def test_what_was_there_is_kept_and_the_pipeline_is_held(case: Case, tmp_path: Path) -> None:
    lived(case)
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    later = acquire(case.control, "orders-g3-b", 30, above_epoch=40)
    release(case.control, later)
    change_desired(case.control, "stopped", restart=True, by="bob")
    case.control.submission.write_text("{torn")
    (case.control.folder / "crash-loop.json").write_text("{}")
    before = contents(case.control.folder)

    done = restore(case, source)
    desired = read_desired(case.control)
    assert (desired.state, desired.freshness, desired.by) == ("held", "5s", "ada")
    assert "restored from the backup of" in desired.reason and desired.generation > 1
    aside = contents(done.aside / "orders")
    for name, content in before.items():
        kept = aside.get(name, contents(case.control.folder).get(name))
        assert kept == content, f"{name} is lost"
    assert not (case.control.folder / "crash-loop.json").exists(), "it is not in the backup"
    assert case.control.log("orders-g2-a").read_text() == "a log"
    assert Submission.model_validate_json(case.control.submission.read_text()).app_id == "orders-g2-a"
    lease = read_lease(case.control)
    assert lease is not None and (lease.epoch, lease.released) == (41, True), "no epoch goes back"
    (incident,) = read_incidents(case.control)
    assert (incident.asked_by, incident.approved_by, incident.outcome) == ("ada", "ada", "held until a person starts it")
    for name in ("submission.json", "desired.json", "lease.json", f"incidents/{incident.id}.json"):
        assert (case.control.folder / name).stat().st_mode & 0o077 == 0


def test_on_a_new_machine_a_start_takes_an_epoch_above_those_of_the_tables(case: Case, tmp_path: Path) -> None:
    lived(case)
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    case.land(DELTA, 30, 40)  # by epoch 99, after the backup
    close_catalog(case)
    os.rename(case.control.folder, tmp_path / "the old machine")
    restore(case, source)
    lease = read_lease(case.control)
    assert lease is not None and lease.epoch == 7, "as in the backup"
    assert not isinstance(read_desired(case.control), LostDesired)
    taken = take_lease(make_run_spec(case.spec, case.settings, read_desired(case.control), "orders-new"))
    assert taken.epoch == 100
    release(case.control, taken)


def test_a_table_that_went_on_after_the_backup_is_found_and_repaired(case: Case, tmp_path: Path) -> None:
    lived(case)
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    app = lander(ICEBERG, case.at, epoch=50)
    for start in range(30, 60):
        app.land(start, start + 1)
    done = restore(case, source)
    assert done.catalog_aside is not None and pointers_of(done.catalog_aside)["shop.orders"] != ""
    states = {table.table: table.state for table in read_ledgers(case.spec, case.at)}
    assert states[ICEBERG.id] == "behind"
    case.apply("repoint", case.plan("repoint"))
    assert landed_offsets(open_table(ICEBERG, case.at)) == list(range(60))
    assert read_desired(case.control).state == "held"


def test_nothing_is_restored_while_something_uses_what_would_be_replaced(case: Case, tmp_path: Path) -> None:
    lived(case)
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    close_catalog(case)
    approved = plan_restore(case.settings, source).hash
    own = acquire(case.control, "orders-g2-b", 30)
    with pytest.raises(RestoreRefusedError, match="orders-g2-b"):
        apply_restore(case.settings, source, approved, by="ada")
    release(case.control, own)
    with pytest.raises(RestoreRefusedError, match="has changed and the plan is now"):
        apply_restore(case.settings, source, approved, by="ada")
    holds = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('select 1 from iceberg_tables').fetchall();"
    command = [sys.executable, "-c", holds + "print('open', flush=True); sys.stdin.read()"]
    file = str(case.at.iceberg_warehouse / "catalog.db")
    with subprocess.Popen([*command, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None and reader.stdout.readline() == b"open\n"
        with pytest.raises(RestoreRefusedError, match=f"in use by process {reader.pid} "):
            apply_restore(case.settings, source, plan_restore(case.settings, source).hash, by="ada")
    assert read_desired(case.control).state == "running"
    assert not (case.settings.home / "aside").exists()


def test_a_catalog_for_other_places_is_refused(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(tmp_path / "elsewhere"))
    shown = lakebound("restore", str(source), code=1)
    assert f"set LAKEBOUND_WAREHOUSE={case.settings.warehouse}" in shown.stderr


def rewritten(source: Path, target: Path, change: Callable[[str, bytes], tuple[str, bytes]]) -> Path:
    """Return the archive with each member changed."""
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        for member in old:
            content = old.extractfile(member)
            assert content is not None
            name, body = change(member.name, content.read())
            info = tarfile.TarInfo(name)
            info.size = len(body)
            new.addfile(info, io.BytesIO(body))
    return target


def manifest_with(**changes: Any) -> Callable[[str, bytes], tuple[str, bytes]]:
    return lambda name, body: (name, json.dumps({**json.loads(body), **changes}).encode() if name == MANIFEST else body)


def is_whole(damage: bytes, content: bytes) -> bool:
    """Whether the archive holds the same in spite of another byte: a run of zeros may be copied from any other one."""
    try:
        return gzip.decompress(damage) == gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return False


def test_a_damaged_or_foreign_backup_changes_nothing(case: Case, tmp_path: Path) -> None:
    lived(case)
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    close_catalog(case)
    before = contents(case.control.folder), contents(case.settings.warehouse)
    damaged = tmp_path / "damaged.tar.gz"
    content = source.read_bytes()
    for at in range(200, len(content), len(content) // 12):
        for damage in (content[:at], content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]):
            if is_whole(damage, content):
                continue
            damaged.write_bytes(damage)
            with pytest.raises(BackupError):
                apply_restore(case.settings, damaged, plan_restore(case.settings, damaged).hash, by="ada")
    forged = rewritten(source, damaged, lambda name, body: (name, body[:-1] + b"x" if "lease" in name else body))
    with pytest.raises(BackupError, match=r"lease.json is not what was copied"):
        apply_restore(case.settings, forged, plan_restore(case.settings, forged).hash, by="ada")
    escaping = {"path": "pipelines/orders/../../../escaped", "size_bytes": 1, "sha256": "0"}
    with pytest.raises(BackupError, match="escaped"):
        read_manifest(rewritten(source, damaged, manifest_with(files=[escaping])))
    with pytest.raises(BackupError, match="restore it with that version"):
        read_manifest(rewritten(source, damaged, manifest_with(format=2, writer="9.0")))
    with pytest.raises(BackupError, match="does not exist"):
        read_manifest(tmp_path / "nothing")
    assert (contents(case.control.folder), contents(case.settings.warehouse)) == before
    assert not list((case.settings.home / "aside").iterdir())


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "pipelines/a/../b", "pipelines/a", "other/a/b", "pipelines/a/logs/x", "catalog.db/x"]
)
def test_a_restore_writes_below_its_own_folders_only(path: str) -> None:
    assert not is_safe(path)
    assert is_safe("pipelines/a/lease.json") and is_safe("catalog.db")


def test_cut_short_anywhere_the_pipeline_is_held_and_the_next_restore_completes(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lived(case)
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    replace, left = os.replace, [0]

    def cut(old: Any, new: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise OSError("cut short")
        replace(old, new)

    wanted, cuts = contents(case.control.folder), 0
    for number in range(1, 40):
        change_desired(case.control, "running")
        (case.control.folder / "outcomes").mkdir(exist_ok=True)
        left[0] = number
        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", cut)
            try:
                restore(case, source)
                break
            except OSError:
                cuts += 1
        if number > 1:  # the first one cuts the hold itself: nothing was changed then
            assert read_desired(case.control).state == "held"
        restore(case, source)
        assert read_desired(case.control).state == "held"
        assert case.control.submission.read_bytes() == wanted["submission.json"]
        assert landed_offsets(open_table(ICEBERG, case.at)) == list(range(30))
    assert cuts > 5


def test_the_commands_say_what_they_do(case: Case, tmp_path: Path) -> None:
    lived(case)
    other = ControlFolder(case.settings.home, "payments")
    said = lakebound("backup", str(tmp_path))
    (source,) = tmp_path.glob("lakebound-*.tar.gz")
    assert f"{source}: state of the pipelines orders; the Iceberg catalog with 1 tables" in said.stdout.replace(
        "2 tables", "1 tables"
    )
    assert "the tables' data is not in the file" in said.stderr
    assert "already" in lakebound("backup", str(source), code=1).stderr
    change_desired(other, "running")
    close_catalog(case)
    planned = lakebound("restore", str(source)).stdout
    assert "- orders: its state is moved aside" in planned and "- payments: not in the backup; it is held, too" in planned
    assert read_desired(case.control).state == "running", "a plan changes nothing"
    applied = lakebound("restore", str(source), "--apply", planned.split()[-1]).stdout
    assert "orders: restored and held; look at it (lakebound doctor orders), then: lakebound start orders" in applied
    assert (read_desired(case.control).state, read_desired(other).state) == ("held", "held")


def test_a_catalog_is_found_whatever_characters_its_path_has(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    close_catalog(case)
    odd = tmp_path / "a#b%20c"
    shutil.copytree(case.settings.warehouse, odd)
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(odd))
    settings = load_settings()
    path, manifest = write_backup(settings, tmp_path / "backup.tar.gz")
    assert manifest.iceberg_tables.keys() >= {"shop.orders"}
    looking = places_of(settings, "default").read_only()
    assert rules_of(ICEBERG.format).may_exist(looking) and open_table(ICEBERG, looking).exists()
    approved = plan_restore(settings, path).hash
    catalogs.open_catalog(looking).engine.dispose()
    catalogs._open_catalog.cache_clear()
    apply_restore(settings, path, approved, by="ada")
    assert open_table(ICEBERG, looking).exists()
    questioned = tmp_path / "a?b#c%d.db"
    shutil.copy(odd / "iceberg" / "catalog.db", questioned)
    assert pointers_of(questioned) == manifest.iceberg_tables
    assert sorted(file.name for file in tmp_path.iterdir() if file.name in ("a", "a#b c")) == []


def names_beside(catalog: Path) -> list[str]:
    return sorted(path.name for path in catalog.parent.iterdir() if path.name.startswith((catalog.name, f".{catalog.name}")))


def no_link(*_: Any) -> None:
    raise OSError(errno.EPERM, "no links here")


@pytest.mark.parametrize("links", [True, False])
def test_a_restore_cut_before_the_new_catalog_leaves_the_former_one(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    case.land(ICEBERG, 30, 40)
    close_catalog(case)
    catalog = case.at.iceberg_warehouse / "catalog.db"
    before, replace = pointers_of(catalog), os.replace

    def cut(old: Any, new: Any) -> None:
        if Path(new) == catalog:
            raise KeyboardInterrupt
        replace(old, new)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", cut)
        if not links:
            patch.setattr(os, "link", no_link)
        with pytest.raises(KeyboardInterrupt):
            restore(case, source)
        assert pointers_of(catalog) == before
        patch.setattr(os, "replace", replace)
        done = restore(case, source)
    assert done.catalog_aside is not None and pointers_of(done.catalog_aside) == before
    assert landed_offsets(open_table(ICEBERG, case.at)) == list(range(30))


@pytest.mark.parametrize("settled", [True, False])
def test_what_sqlite_left_beside_the_former_catalog_is_not_applied_to_the_new_one(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    source, manifest = write_backup(case.settings, tmp_path / "backup.tar.gz")
    catalog = case.at.iceberg_warehouse / "catalog.db"
    close_catalog(case)
    change = "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('delete from iceberg_tables'); c.commit();"
    subprocess.run([sys.executable, "-c", change + "os._exit(0)", str(catalog)], check=True)
    left = catalog.with_name("catalog.db-wal").read_bytes()
    assert left, "a process that died leaves its commits there"
    if not settled:
        monkeypatch.setattr(restoring, "_settle", lambda _: None)
    done = apply_restore(case.settings, source, plan_restore(case.settings, source).hash, by="ada")
    assert pointers_of(catalog) == manifest.iceberg_tables
    assert done.catalog_aside is not None
    aside_wal = done.catalog_aside.with_name(f"{done.catalog_aside.name}-wal")
    assert (aside_wal.read_bytes() if aside_wal.exists() else b"") == (b"" if settled else left)
    assert pointers_of(done.catalog_aside) == {}


def test_a_damaged_catalog_is_kept_and_replaced(case: Case, tmp_path: Path) -> None:
    source, manifest = write_backup(case.settings, tmp_path / "backup.tar.gz")
    close_catalog(case)
    catalog = case.at.iceberg_warehouse / "catalog.db"
    catalog.write_bytes(b"no database" * 1000)
    done = apply_restore(case.settings, source, plan_restore(case.settings, source).hash, by="ada")
    assert pointers_of(catalog) == manifest.iceberg_tables
    assert done.catalog_aside is not None and done.catalog_aside.read_bytes() == b"no database" * 1000


def test_a_full_disk_at_the_catalog_leaves_nothing_behind(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    close_catalog(case)
    catalog = case.at.iceberg_warehouse / "catalog.db"
    before = pointers_of(catalog)

    def full(_: Any, target: Path) -> None:
        target.write_bytes(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        restore(case, source)
    assert [name for name in names_beside(catalog) if "aside" in name] == []
    assert pointers_of(catalog) == before


def test_a_link_in_an_archive_is_refused(case: Case, tmp_path: Path) -> None:
    lived(case)
    source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
    for linked in ("pipelines/orders/submission.json", MANIFEST):
        forged = tmp_path / f"{Path(linked).stem}.tar.gz"
        with tarfile.open(source) as old, tarfile.open(forged, "w:gz") as new:
            for member in old:
                if member.name == linked:
                    member.type, member.linkname, member.size = tarfile.SYMTYPE, Path(linked).name, 0
                new.addfile(member, old.extractfile(member) if member.isreg() else None)
        folder = tmp_path / Path(linked).stem
        folder.mkdir()
        with pytest.raises(BackupError, match=f"{linked} in it is a link"):
            extract(forged, read_manifest(forged), folder)


@pytest.mark.parametrize("links", [True, False])
def test_a_backup_overwrites_no_other(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    lived(case)
    monkeypatch.setattr(time, "strftime", lambda *_: "20261124T000000Z")
    if not links:
        monkeypatch.setattr(os, "link", no_link)
    folder = tmp_path / "backups"
    folder.mkdir()
    made = [write_backup(case.settings, folder) for _ in range(3)]
    assert [path.name for path, _ in made] == [f"lakebound-20261124T000000Z{ending}.tar.gz" for ending in ("", "-2", "-3")]
    assert [read_manifest(path) for path, _ in made] == [manifest for _, manifest in made]
    write = archiving._write

    def meanwhile(*args: Any) -> Any:
        (folder / "named").write_text("another's")
        return write(*args)

    monkeypatch.setattr(archiving, "_write", meanwhile)
    with pytest.raises(BackupError, match="already"):
        write_backup(case.settings, folder / "named")
    assert (folder / "named").read_text() == "another's"
    assert len(list(folder.iterdir())) == 4


def test_a_plan_says_that_a_table_which_the_backup_does_not_know_must_not_be_started(case: Case, tmp_path: Path) -> None:
    lived(case)
    catalog = case.at.iceberg_warehouse / "catalog.db"
    with closing(sqlite3.connect(catalog)) as opened:
        rows = opened.execute("select * from iceberg_tables where table_name = 'orders'").fetchall()
        opened.execute("delete from iceberg_tables where table_name = 'orders'")
        opened.commit()
        source, _ = write_backup(case.settings, tmp_path / "backup.tar.gz")
        opened.executemany(f"insert into iceberg_tables values ({', '.join('?' * len(rows[0]))})", rows)
        opened.commit()
    said = "\n".join(plan_restore(case.settings, source).lines())
    assert (
        "shop.orders: it will not know this table: a start would create it again and hide the rows that are there; do not start"
        in said
    )
    assert "runbook catalog-behind" in said
