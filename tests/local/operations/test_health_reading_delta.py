"""Health read from a Delta log: its tail and checkpoints, tombstones, kept versions, deletion vectors."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from deltalake import DeltaTable
from tests.support.tables.health_tables import by_name, landed, read
from tests.support.tables.local_tables import lander
from tests.support.tables.maintenance import compact_delta

from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places


def delta(**more: object) -> TableSpec:
    return TableSpec.model_validate({"format": "delta", "name": "shop.orders", **more})


def log_of(spec: TableSpec, at: Places) -> Path:
    return at.delta_path(spec) / "_delta_log"


def test_the_log_since_its_checkpoint(at: Places) -> None:
    spec = delta()
    landed(spec, at, 4)
    log = log_of(spec, at)
    before = read(spec, at).metadata
    assert (before.log_tail_commits, before.log_files) == (5, 5)
    assert before.metadata_bytes == sum(path.stat().st_size for path in log.glob("*.json"))
    DeltaTable(str(at.delta_path(spec))).create_checkpoint()
    after = read(spec, at).metadata
    assert (after.log_tail_commits, after.log_files, after.snapshots) == (0, 7, 5)
    assert after.metadata_bytes == next(log.glob("*.checkpoint.parquet")).stat().st_size
    lander(spec, at).land(12, 13)
    assert read(spec, at).metadata.log_tail_commits == 1


def test_compaction_leaves_tombstones(at: Places) -> None:
    spec = delta(partition_by=["city"])
    app = landed(spec, at, 5)
    table = DeltaTable(str(at.delta_path(spec)))
    removed = table.optimize.compact()["numFilesRemoved"]
    assert removed == 15
    tail = read(spec, at)
    assert (tail.files, tail.rows, tail.metadata.tombstones) == (3, 15, 15)
    table.create_checkpoint()
    app = lander(spec, at)
    app.land(15, 18)
    checkpoint = read(spec, at)
    assert (checkpoint.files, checkpoint.metadata.tombstones) == (6, 15)


def test_tombstones_are_counted_without_statistics_too(at: Places) -> None:
    spec = delta()
    landed(spec, at, 4)
    table = DeltaTable(str(at.delta_path(spec)))
    table.optimize.compact()
    table.create_checkpoint()
    checkpoint = next(log_of(spec, at).glob("*.checkpoint.parquet"))
    pq.write_table(pq.read_table(checkpoint), checkpoint, write_statistics=False)
    assert read(spec, at).metadata.tombstones == 4


def test_versions_that_a_cleaned_log_still_leads_to(at: Places) -> None:
    spec = delta()
    app = landed(spec, at, 5)
    compact_delta(spec, at)  # version 6, with a log checkpoint; earlier commits are deleted
    assert read(spec, at).metadata.snapshots == 1
    app = lander(spec, at)
    app.land(15, 18)
    (log_of(spec, at) / f"{6:020d}.json").unlink()
    facts = read(spec, at)
    assert facts.metadata.snapshots == 2, "the log checkpoint of version 6 is enough to read it"
    assert facts.metadata.oldest_version_at_ms == next(iter(app.table.history().versions())).committed_at_ms


def test_half_a_checkpoint_does_not_count(at: Places) -> None:
    spec = delta()
    landed(spec, at, 3)
    (log_of(spec, at) / f"{2:020d}.checkpoint.{1:010d}.{2:010d}.parquet").write_bytes(b"half")
    assert read(spec, at).metadata.log_tail_commits == 4


def test_deletion_vectors(at: Places) -> None:
    spec = delta(partition_by=["city"], properties={"delta.enableDeletionVectors": "true"})
    landed(spec, at, 2)
    log = log_of(spec, at)
    add = next(json.loads(line)["add"] for line in (log / f"{1:020d}.json").read_text().splitlines() if '"add"' in line)
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4, "sizeInBytes": 40, "cardinality": 1}
    remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "size": add["size"]}
    actions = [{"add": {**add, "deletionVector": vector}}, {"remove": remove}, {"commitInfo": {"operation": "DELETE"}}]
    (log / f"{3:020d}.json").write_text("\n".join(json.dumps(action) for action in actions))
    in_tail = {name: part.delete_files for name, part in by_name(read(spec, at)).items()}
    assert sum(in_tail.values()) == 1 and in_tail[f"city={add['partitionValues']['city']}"] == 1
    DeltaTable(str(at.delta_path(spec))).create_checkpoint()
    assert {name: part.delete_files for name, part in by_name(read(spec, at)).items()} == in_tail
    (log / f"{4:020d}.json").write_text(json.dumps({"remove": remove}))
    assert sum(part.delete_files for part in read(spec, at).partitions) == 0


def test_delta_partition_values_are_as_the_log_writes_them(at: Places) -> None:
    spec = delta(partition_by=["at", "id"])
    landed(spec, at, 1)
    log = (log_of(spec, at) / f"{1:020d}.json").read_text().splitlines()
    written = [json.loads(line)["add"]["partitionValues"] for line in log if '"add"' in line]
    read_back = [part.values for part in read(spec, at).partitions]
    assert sorted(written, key=str) == sorted(read_back, key=str)
