"""Compaction and the end of history, with the entry carried on: done to tables while nothing runs."""

from __future__ import annotations

from pathlib import Path

from deltalake import CommitProperties, PostCommitHookProperties

from lakebound.ledger.entry import encode, new_commit_id
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
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
