"""What other people do to tables behind Lakebound's back: restore, roll back, expire the commits that carry entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from deltalake import PostCommitHookProperties, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as PyIcebergTable

from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.iceberg.catalog import CATALOG_NAME
from lakebound.tables.places import Places


def take_back(spec: TableSpec, at: Places, version: str) -> None:
    """Put a table back to an older version with its format's own tool: Delta's RESTORE, Iceberg's rollback."""
    if spec.format == "delta":
        open_at(at.folder(spec)).restore(int(version))
    else:
        foreign_iceberg(spec, at).manage_snapshots().rollback_to_snapshot(int(version)).commit()


def rewrite_rows(spec: TableSpec, at: Places, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Write all rows of a table again, changed in place, as another tool does."""
    folder = at.folder(spec)
    found = open_at(folder).to_pyarrow_table() if spec.format == "delta" else foreign_iceberg(spec, at).scan().to_arrow()
    rows = found.to_pylist()
    change(rows)
    changed = pa.Table.from_pylist(rows, schema=found.schema)
    if spec.format == "delta":
        write_deltalake(open_at(folder), changed, mode="overwrite")
    else:
        foreign_iceberg(spec, at).overwrite(changed)


def forget_entries(spec: TableSpec, at: Places) -> None:
    """Take all entries out of a table's history, as a tool that expires commits does."""
    if spec.format == "delta":
        for file, _ in (at.folder(spec) / "_delta_log").list():
            if file.name.endswith(".json"):
                file.put(file.read().replace(b"userMetadata", b"forgotten"))
        return
    foreign = foreign_iceberg(spec, at)
    ours = [snapshot.snapshot_id for snapshot in foreign.metadata.snapshots]
    with foreign.transaction() as transaction, transaction.update_snapshot().fast_append():
        pass
    foreign.maintenance.expire_snapshots().by_ids(ours).commit()


def foreign_iceberg(spec: TableSpec, at: Places) -> PyIcebergTable:
    """Return a handle from a catalog that Lakebound knows nothing of."""
    catalog = SqlCatalog(CATALOG_NAME, uri=f"{at.iceberg_catalog_uri}?timeout=60", warehouse=f"file://{at.iceberg_warehouse}")
    return catalog.load_table((spec.namespace, spec.short_name))


def forget_all_but_newest(spec: TableSpec, at: Places) -> None:
    """Keep the newest commit of a table alone, as Delta's log clean-up and Iceberg's expiry can."""
    if spec.format == "delta":
        handle = open_at(at.folder(spec))
        handle.create_checkpoint()
        for file, _ in (at.folder(spec) / "_delta_log").list():
            if file.name.endswith(".json") and int(file.name[:20]) < handle.version():
                file.delete()
        return
    foreign = foreign_iceberg(spec, at)
    current = foreign.metadata.current_snapshot_id
    older = [snapshot.snapshot_id for snapshot in foreign.metadata.snapshots if snapshot.snapshot_id != current]
    if older:
        foreign.maintenance.expire_snapshots().by_ids(older).commit()


def commit_without_entry(spec: TableSpec, at: Places) -> None:
    """Commit to a table, changing no row, as another tool does."""
    if spec.format == "delta":
        open_at(at.folder(spec)).alter.set_table_properties(
            {"delta.checkpoint.writeStatsAsJson": "true"},
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
        )
        return
    with foreign_iceberg(spec, at).transaction() as transaction, transaction.update_snapshot().fast_append():
        pass
