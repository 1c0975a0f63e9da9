"""What an Iceberg table's metadata says of its files: metadata file, manifest list and manifests. No data file is read."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json
from pyiceberg.manifest import ManifestEntryStatus
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.types import IcebergType, StringType

from lakebound.spec.table import TableSpec
from lakebound.tables.health import FileFacts, MetadataFacts, PartitionFacts, TableFacts
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.manifests import ENTRIES, MANIFESTS
from lakebound.tables.iceberg.metadata import metadata_location, read_table
from lakebound.tables.iceberg.metadata_json import Body, parse_body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places

_Key = tuple[int, tuple[Any, ...]]


def read_facts(spec: TableSpec, places: Places, now_ms: int) -> TableFacts | None:
    """Return what the metadata says of the table's current snapshot; None where there is no table.

    Args:
        spec: The table.
        places: Where tables are.
        now_ms: Epoch milliseconds; noted as the time of the facts.

    Raises:
        FileNotFoundError: A commit or an expiry removed a metadata file meanwhile: read again.
    """
    catalog = open_catalog(places)
    if isinstance(catalog, LedgerCatalog):
        location = metadata_location(catalog, spec)
        if location is None:
            return None
        content = places.file_at(location).read()
        standing = _standing(parse_body(content), len(content))
    else:
        found = read_table(catalog, spec, places)
        if found is None:
            return None
        standing = _standing(found[1], len(to_json(found[1])))
    files = _read_files(standing, places)
    return TableFacts(
        table=spec.id,
        at_ms=now_ms,
        version=standing.version,
        rows=files.rows,
        properties=dict(standing.metadata.properties),
        partitions=_partitions(standing.metadata, files),
        metadata=MetadataFacts(
            metadata_bytes=standing.size_bytes + files.metadata_bytes,
            manifests=files.manifests,
            snapshots=len(standing.committed_at_ms),
            oldest_version_at_ms=min(standing.committed_at_ms.values(), default=None),
            dangling_delete_files=sum(count for key, count in files.delete_files.items() if key not in files.data_files),
        ),
    )


@dataclass(frozen=True)
class _Standing:
    """A metadata file.

    Attributes:
        metadata: With the current snapshot alone.
        committed_at_ms: Snapshot id to its time, of all that are kept.
    """

    metadata: TableMetadata
    size_bytes: int
    committed_at_ms: Mapping[int, int]

    @property
    def version(self) -> str:
        """The current snapshot's id; empty without one."""
        snapshot = self.metadata.current_snapshot()
        return str(snapshot.snapshot_id) if snapshot else ""


@dataclass
class _Files:
    """What manifests hold, by partition spec and value."""

    data_files: defaultdict[_Key, list[FileFacts]] = field(default_factory=lambda: defaultdict(list))
    delete_files: Counter[_Key] = field(default_factory=Counter)
    rows: int = 0
    manifests: int = 0
    metadata_bytes: int = 0


def _standing(body: Body, size_bytes: int) -> _Standing:
    snapshots, current = body.get("snapshots") or [], body.get("current-snapshot-id")
    slim = {
        **body,
        "snapshots": [snapshot for snapshot in snapshots if snapshot["snapshot-id"] == current],
        "snapshot-log": [],
        "metadata-log": [],
    }
    times = {snapshot["snapshot-id"]: snapshot["timestamp-ms"] for snapshot in snapshots}
    return _Standing(TableMetadataUtil.parse_obj(slim), size_bytes, times)


def _read_files(standing: _Standing, places: Places) -> _Files:
    files, snapshot = _Files(), standing.metadata.current_snapshot()
    if snapshot is None:
        return files
    times = standing.committed_at_ms
    oldest_ms = min(times.values())
    content = places.file_at(snapshot.manifest_list).read()
    files.metadata_bytes = len(content)
    for manifest in MANIFESTS.rows(content):
        path, length, spec_id, added_by = manifest[0], manifest[1], manifest[2], manifest[3]
        files.manifests += 1
        files.metadata_bytes += length
        for entry in ENTRIES.rows(places.file_at(path).read()):
            if entry[0] == ManifestEntryStatus.DELETED:
                continue
            file = entry[2]
            key = (spec_id, tuple(file[1][number] for number in range(len(file[1]))))
            if file[0]:  # None in a first-format manifest, which holds data files only
                files.delete_files[key] += 1
                continue
            files.rows += file[2]
            # An entry without a snapshot inherits the one that added its manifest.
            at_ms = times.get(added_by if entry[1] is None else entry[1], oldest_ms)
            is_older = spec_id != standing.metadata.default_spec_id
            files.data_files[key].append(FileFacts(size_bytes=file[3], added_at_ms=at_ms, is_of_older_spec=is_older))
    return files


def _partitions(metadata: TableMetadata, files: _Files) -> tuple[PartitionFacts, ...]:
    """Return the partitions; what two partition specs name alike is one, as a rewrite joins it under the newer."""
    names = {key: tuple(partition_texts(metadata, *key).items()) for key in files.data_files}
    data_files: defaultdict[tuple[tuple[str, str | None], ...], list[FileFacts]] = defaultdict(list)
    delete_files: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for key, group in files.data_files.items():
        data_files[names[key]] += group
        delete_files[names[key]] += files.delete_files[key]
    return tuple(
        PartitionFacts(values=dict(name), files=tuple(group), delete_files=delete_files[name])
        for name, group in data_files.items()
    )


def partition_texts(metadata: TableMetadata, spec_id: int, values: tuple[Any, ...]) -> dict[str, str | None]:
    """Return a partition's fields and values as Iceberg writes them in a path, such as ``at_day``, ``2026-11-20``.

    Args:
        metadata: Of the table.
        spec_id: Id of the partition spec by which the file was written.
        values: Values of the fields of that spec, in their order.
    """
    fields = metadata.specs()[spec_id].fields
    return {
        part.name: None if value is None else part.transform.to_human_string(_type(metadata, part.source_id), value)
        for part, value in zip(fields, values, strict=True)
    }


def _type(metadata: TableMetadata, field_id: int) -> IcebergType:
    """Return a column's type; a column that was dropped stands in an older schema."""
    for schema in (metadata.schema(), *metadata.schemas):
        if field_id in schema.field_ids:
            return schema.find_field(field_id).field_type
    return StringType()
