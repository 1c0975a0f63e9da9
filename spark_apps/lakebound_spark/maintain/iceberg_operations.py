"""Java's operations on an Iceberg table, with the commit made here: what it names is on the disk before the catalog names it.

Iceberg's Spark actions write data files, manifests and metadata without syncing any, and swap the catalog's pointer; after a
power cut the pointer could name files that are empty. They also do not say when they commit, and beside a stream that commits
ten times a second each of their attempts would be lost. So the table that an action gets has these operations: all is Java's
own but the commit, which syncs, and hands to the stream what it may commit; where no stream takes it, it swaps the pointer, and
asks the stream for a turn once that has been lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from py4j.java_collections import MapConverter
from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import ensure_callback_server_started

from lakebound.control.handover import HandOver
from lakebound.control.turns import AskForTurn
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.catalog import LedgerCatalog
from lakebound.tables.iceberg.expirable import with_newest_entry
from lakebound.tables.iceberg.graft import replacement
from lakebound.tables.iceberg.local_files import local_path, sync_locations
from lakebound.tables.iceberg.manifests import FILE_PATHS, AvroFields
from lakebound.tables.iceberg.metadata import metadata_location, next_location, swap
from lakebound.tables.iceberg.metadata_json import body_bytes, parse_body
from lakebound.tables.prepared import ManifestReplacement, to_text

_MANIFESTS = AvroFields(ids=(500, 503))
"""Of a manifest list: each manifest's path, and the snapshot that added it."""

_ADDED = 1

_TEXTS = {"STRING", "BINARY"}
_WITHOUT_PARTITION_FOLDERS = {"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"}


class SyncedOperations:
    """A Java ``TableOperations``, implemented here.

    Attributes:
        commits: How many were made.
        conflicts: How many were refused because somebody else was faster.
    """

    def __init__(
        self, java: Any, jvm: Any, catalog: LedgerCatalog, table: TableSpec, turn: AskForTurn, hand_over: HandOver
    ) -> None:
        """Commit nothing yet.

        Args:
            java: The catalog's own operations on the table.
            jvm: Spark's.
            catalog: Of the table.
            table: The table.
            turn: Asks the stream to let a commit through.
            hand_over: Has the stream make a commit.
        """
        self._java = java
        self._jvm = jvm
        self._catalog = catalog
        self._table = table
        self._turn = turn
        self._hand_over = hand_over
        self._since_ms = int(time.time() * 1000)
        self._is_losing = False
        self.commits = 0
        self.conflicts = 0

    def commit(self, base: Any, metadata: Any) -> None:
        """Java's ``commit``: replace the table's metadata, or raise its CommitFailedException."""
        if base.equals(metadata):
            return
        before = base.metadataFileLocation()
        if self._is_committed_by_stream(base, metadata):
            self.commits += 1
            self._java.refresh()
            return
        location = next_location(metadata.location(), dict(metadata.properties()), before)
        self._jvm.org.apache.iceberg.TableMetadataParser.overwrite(metadata, self._java.io().newOutputFile(location))
        self._carry_newest(base, location)
        sync_locations([*_new_files(base, metadata), location], metadata.location())
        if not self._is_swapped(before, location):
            local_path(location).unlink(missing_ok=True)
            self.conflicts += 1
            self._is_losing = True
            self._turn()
            self._raise_lost(before)
        self.commits += 1
        self._is_losing = False
        self._turn.end()
        self._jvm.org.apache.iceberg.CatalogUtil.deleteRemovedMetadataFiles(self._java.io(), base, metadata)
        self._java.refresh()

    def _carry_newest(self, base: Any, location: str) -> None:
        """Have the new snapshots carry on the entry that counts in ``base``: the action's own is of when it began."""
        path = local_path(location)
        written = path.read_bytes()
        body = parse_body(written)
        known = {int(snapshot.snapshotId()) for snapshot in base.snapshots()}
        current = with_newest_entry(body, known, self._table.id)
        if current != body:
            path.write_bytes(body_bytes(current, written))

    def _is_committed_by_stream(self, base: Any, metadata: Any) -> bool:
        """Whether the stream has made the commit; False: nobody has, and nobody will.

        Raises:
            Py4JJavaError: It was refused, and Iceberg makes it anew; or nobody knows, and Iceberg deletes nothing.
        """
        prepared = self._prepared(base, metadata) if self._hand_over.is_open() else None
        if prepared is None:
            return False
        sync_locations(_new_files(base, metadata), metadata.location())
        answer = self._hand_over(to_text(prepared), self._since_ms)
        if answer is None:
            return False
        if answer.outcome == "committed" or self._java.refresh().snapshot(prepared.snapshot["snapshot-id"]) is not None:
            return True
        if answer.outcome == "unknown":
            unknown = self._jvm.org.apache.iceberg.exceptions.CommitStateUnknownException
            cause = self._jvm.java.lang.IllegalStateException(answer.reason)
            raise Py4JJavaError(f"{self._table.id}: its commit was handed to the stream", unknown(cause))
        self.conflicts += 1
        self._raise_lost(base.metadataFileLocation())
        return False

    def _prepared(self, base: Any, metadata: Any) -> ManifestReplacement | None:
        """Return the commit as the stream may make it; None where it is more than one snapshot that replaces another."""
        changes = sorted(str(one.getClass().getSimpleName()) for one in metadata.changes())
        current = base.currentSnapshot()
        if changes != ["AddSnapshot", "SetSnapshotRef"] or current is None:
            return None
        to_json = self._jvm.org.apache.iceberg.SnapshotParser.toJson
        snapshot, before = json.loads(to_json(metadata.currentSnapshot())), json.loads(to_json(current))
        if snapshot["summary"]["operation"] != "replace" or snapshot.get("parent-snapshot-id") != before["snapshot-id"]:
            return None
        return replacement(
            before,
            snapshot,
            table_uuid=str(base.uuid()),
            schema_id=int(base.currentSchemaId()),
            spec_id=int(base.defaultSpecId()),
        )

    def _is_swapped(self, before: str, location: str) -> bool:
        try:
            return swap(self._catalog, self._table, before, location)
        except Exception:
            # The catalog may have done it despite the error, and says so.
            if metadata_location(self._catalog, self._table) != location:
                raise
            return True

    def _raise_lost(self, before: str) -> None:
        """Raise Java's exception after which an action reads the table again and tries once more."""
        failed = self._jvm.org.apache.iceberg.exceptions.CommitFailedException
        arguments = self._jvm.java.lang.reflect.Array.newInstance(self._jvm.java.lang.Object._java_lang_class, 0)
        raise Py4JJavaError(f"{self._table.id} is no longer at {before}", failed("Somebody else was faster", arguments))

    def refresh(self) -> Any:
        """Java's ``refresh``. While a commit is being lost, the stream is asked to wait."""
        if self._is_losing:
            self._turn()
        return self._java.refresh()

    def current(self) -> Any:
        """Java's ``current``."""
        return self._java.current()

    def io(self) -> Any:
        """Java's ``io``."""
        return self._java.io()

    def encryption(self) -> Any:
        """Java's ``encryption``."""
        return self._java.encryption()

    def metadataFileLocation(self, name: str) -> str:
        """Java's ``metadataFileLocation``."""
        return str(self._java.metadataFileLocation(name))

    def locationProvider(self) -> Any:
        """Java's ``locationProvider``; for a table partitioned by text, one that names no folder after a partition's value.

        Such a name may be longer than a file system takes, and the files of its partition could never be compacted.
        """
        current = self._java.current()
        kinds = {field.type().typeId().name() for field in current.spec().partitionType().fields()}
        if not kinds & _TEXTS:
            return self._java.locationProvider()
        properties = {**dict(current.properties()), **_WITHOUT_PARTITION_FOLDERS}
        provider = self._jvm.org.apache.iceberg.LocationProviders.locationsFor
        return provider(current.location(), MapConverter().convert(properties, self._jvm._gateway_client))

    def temp(self, metadata: Any) -> Any:
        """Java's ``temp``."""
        return self._java.temp(metadata)

    def newSnapshotId(self) -> int:
        """Java's ``newSnapshotId``."""
        return int(self._java.newSnapshotId())

    def requireStrictCleanup(self) -> bool:
        """Java's ``requireStrictCleanup``."""
        return bool(self._java.requireStrictCleanup())

    def toString(self) -> str:
        """Java's ``toString``."""
        return f"synced operations on {self._table.id}"

    class Java:
        """For Py4J."""

        implements = ("org.apache.iceberg.TableOperations",)


def start_callbacks(gateway: Any) -> None:
    """Have the JVM call Python objects, whose Java exceptions it gets as they are."""
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    for name in ("callback_server_parameters", "python_parameters"):
        parameters = gateway.__dict__.get(name)
        if parameters is not None:
            parameters.propagate_java_exceptions = True


def _new_files(base: Any, metadata: Any) -> Iterator[str]:
    """Yield the files that the metadata's new snapshots brought: lists of manifests, manifests, data and delete files."""
    known = {snapshot.snapshotId() for snapshot in base.snapshots()}
    for snapshot in metadata.snapshots():
        if snapshot.snapshotId() in known:
            continue
        listed = snapshot.manifestListLocation()
        yield listed
        for manifest in _rows(_MANIFESTS, listed):
            if manifest[1] == snapshot.snapshotId():
                yield manifest[0]
                yield from (entry[1][0] for entry in _rows(FILE_PATHS, manifest[0]) if entry[0] == _ADDED)


def _rows(fields: AvroFields, location: str) -> Iterator[Any]:
    return fields.rows(local_path(location).read_bytes())
