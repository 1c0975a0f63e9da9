"""Compaction and the end of history, with the entry carried on: done to tables while nothing runs."""

from __future__ import annotations

import time
from pathlib import Path

from deltalake import CommitProperties, PostCommitHookProperties

from lakebound.ledger.entry import ENTRY_KEY, Entry, encode, new_commit_id
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.actions import CommitInfo, commit_text
from lakebound.tables.delta.open import open_at
from lakebound.tables.delta.put import put
from lakebound.tables.delta.tip import read_tip
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from tests.support.tables.foreign_hands import foreign_iceberg


def carried_entry(spec: TableSpec, at: Places) -> str:
    """Return the entry that counts as a maintenance commit carries it on."""
    entry = open_table(spec, at).read_ledger().entry
    assert entry is not None
    return encode(entry.model_copy(update={"kind": "carry", "commit": new_commit_id()}))


def compact_delta(spec: TableSpec, at: Places) -> int:
    """Compact a Delta table and delete its log up to the newest commit; return how many files were rewritten."""
    table = open_at(at.folder(spec))
    metrics = table.optimize.compact(
        commit_properties=CommitProperties(custom_metadata={"userMetadata": carried_entry(spec, at)}),
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    )
    table.update_incremental()
    table.create_checkpoint()
    for file in (Path(at.delta_path(spec)) / "_delta_log").glob("*.json"):
        if int(file.stem) < table.version():
            file.unlink()
    return int(metrics["numFilesRemoved"])


def expire_iceberg(spec: TableSpec, at: Places) -> int:
    """Expire all snapshots of an Iceberg table but the current one; return how many."""
    table = foreign_iceberg(spec, at)
    current = table.current_snapshot()
    older = [snapshot.snapshot_id for snapshot in table.snapshots() if snapshot != current]
    table.maintenance.expire_snapshots().by_ids(older).commit()
    return len(older)


def carry(spec: TableSpec, at: Places, entry: Entry) -> None:
    """Commit an entry that maintenance carries on, without a change of any row."""
    if spec.format == "delta":
        folder = at.folder(spec)
        info = CommitInfo("VACUUM END", time.time_ns() // 1_000_000, encode(entry))
        tip = read_tip(folder, open_at(folder).version(), spec.id)
        put(folder, tip, commit_text([info.action()]), spec.id)
        return
    foreign = foreign_iceberg(spec, at)
    with foreign.transaction() as transaction, transaction.update_snapshot({ENTRY_KEY: encode(entry)}).fast_append():
        pass
