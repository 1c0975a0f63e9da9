"""What maintenance prepares: as text and back, and on which snapshots it can be committed."""

from __future__ import annotations

from typing import Any

import pytest
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRef, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import LongType, NestedField

from lakebound.tables.iceberg.graft import check_graftable, summary
from lakebound.tables.prepared import (
    DeltaReplacement,
    ManifestReplacement,
    Prepared,
    RemovedFile,
    SnapshotExpiry,
    StalePreparedError,
    parse,
    to_text,
)

TABLE = "iceberg:shop.orders"


def snapshot(number: int, parent: int | None, operation: str = "append", **said: str) -> Snapshot:
    body: dict[str, Any] = {"snapshot-id": number, "parent-snapshot-id": parent, "sequence-number": number}
    body |= {"timestamp-ms": number, "manifest-list": f"/{number}.avro", "summary": {"operation": operation, **said}}
    return Snapshot.model_validate(body)


def history(*snapshots: Snapshot) -> TableMetadata:
    """Return the metadata of a table whose current snapshot is the last of these."""
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    made = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "file:///t", {"format-version": "2"})
    current = snapshots[-1].snapshot_id
    ref = SnapshotRef(snapshot_id=current, snapshot_ref_type=SnapshotRefType.BRANCH)
    return made.model_copy(update={"snapshots": list(snapshots), "current_snapshot_id": current, "refs": {MAIN_BRANCH: ref}})


def prepared(metadata: TableMetadata, base: int = 1, **changes: Any) -> ManifestReplacement:
    body: dict[str, Any] = {
        "table_uuid": str(metadata.table_uuid),
        "schema_id": metadata.current_schema_id,
        "spec_id": metadata.default_spec_id,
        "base": base,
        "base_totals": {"total-records": "10", "total-data-files": "4"},
        "snapshot": {
            "snapshot-id": 99,
            "summary": {"operation": "replace", "added-data-files": "1", "total-records": "10", "total-data-files": "1"},
        },
        "removed": ("/a",),
        "added": ("/b",),
    }
    return ManifestReplacement.model_validate({**body, **changes})


@pytest.mark.parametrize(
    "one",
    [
        DeltaReplacement(version=3, digest="00", removed=(RemovedFile(path="a", size_bytes=1, partition={"day": None}),)),
        SnapshotExpiry(snapshot_ids=(1, 2**62)),
        prepared(history(snapshot(1, None))),
    ],
)
def test_a_text_says_the_same(one: Prepared) -> None:
    assert parse(to_text(one)) == one


@pytest.mark.parametrize(
    "text", ["", "{}", '{"kind": "of a later version"}', '{"kind": "snapshot_expiry", "snapshot_ids": [1], "more": 1}']
)
def test_what_another_version_prepared_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        parse(text)


def test_appends_since_do_no_harm_and_the_totals_count_them() -> None:
    last = snapshot(3, 2, **{"total-records": "16", "total-data-files": "6"})
    metadata = history(snapshot(1, None), snapshot(2, 1), last)
    current = check_graftable(metadata, metadata, prepared(metadata), TABLE)
    assert current.snapshot_id == 3
    said = summary(prepared(metadata), current)
    assert said == {"operation": "replace", "added-data-files": "1", "total-records": "16", "total-data-files": "3"}


@pytest.mark.parametrize("operation", ["delete", "overwrite", "replace"])
def test_anything_else_since_makes_it_stale(operation: str) -> None:
    metadata = history(snapshot(1, None), snapshot(2, 1, operation), snapshot(3, 2))
    with pytest.raises(StalePreparedError, match="snapshot 2, which was committed since, is not an append"):
        check_graftable(metadata, metadata, prepared(metadata), TABLE)


def test_a_rewind_since_makes_it_stale() -> None:
    metadata = history(snapshot(1, None), snapshot(2, 1), snapshot(3, 1))
    with pytest.raises(StalePreparedError, match="does not come from 2"):
        check_graftable(metadata, metadata, prepared(metadata, 2), TABLE)


@pytest.mark.parametrize("changed", [{"schema_id": 7}, {"spec_id": 7}, {"table_uuid": "another"}])
def test_other_columns_make_it_stale(changed: dict[str, Any]) -> None:
    metadata = history(snapshot(1, None))
    with pytest.raises(StalePreparedError, match="columns or its partitioning"):
        check_graftable(metadata, metadata, prepared(metadata, **changed), TABLE)
