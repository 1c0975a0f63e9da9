"""The AWS Glue catalog, by PyIceberg's own client. Not tried: there is no Glue where Lakebound is tested."""

from __future__ import annotations

from collections.abc import Iterable

from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, RemoveSnapshotsUpdate
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties

from lakebound.spec.warehouse import GlueCatalogSpec
from lakebound.storage.location import Location, location_of
from lakebound.tables.iceberg.catalog import CATALOG_NAME
from lakebound.tables.iceberg.known_metadata import KnownMetadata, read_metadata
from lakebound.tables.iceberg.metadata_json import Body, parse_body
from lakebound.tables.iceberg.store_files import StoreFileIO


class GlueLedgerCatalog(GlueCatalog):
    """A GlueCatalog as tables need it. Credentials are the machine's own.

    Args:
        spec: The catalog.
        folder: Below which tables are made.
    """

    def __init__(self, spec: GlueCatalogSpec, folder: Location) -> None:
        self._store = folder.store
        self._files = None if folder.is_local else StoreFileIO(folder.store)
        self._known: dict[Identifier, KnownMetadata] = {}
        super().__init__(CATALOG_NAME, **{"glue.region": spec.region, "warehouse": folder.uri})

    def pointer(self, identifier: Identifier) -> str | None:
        """Return where the table's metadata is; None where there is no such table."""
        try:
            return self.load_table(identifier).metadata_location
        except NoSuchTableError:
            return None

    def read(self, identifier: Identifier) -> tuple[str, Body]:
        """Return where the table's metadata is, and its JSON.

        Raises:
            NoSuchTableError: There is no such table.
        """
        location = self.load_table(identifier).metadata_location
        return location, parse_body(location_of(location, self._store).read())

    def metadata_at(self, identifier: Identifier, location: str, io: FileIO) -> TableMetadata:
        """Return the metadata in a metadata file, all snapshots included. It is shared: never change it."""
        known = self._known.get(identifier)
        if known is None or known.location != location:
            known = self._known[identifier] = read_metadata(location, io, known)
        return known.metadata

    def remove_snapshots(self, identifier: Identifier, before: Body, ids: Iterable[int]) -> Body:
        """Expire snapshots, if branches and tags still are where they were, and return the metadata after it.

        Raises:
            CommitFailedException: The table has moved on.
        """
        refs = (before.get("refs") or {}).items()
        still = (AssertRefSnapshotId.model_validate({"ref": name, "snapshot-id": ref["snapshot-id"]}) for name, ref in refs)
        self.commit_table(
            self.load_table(identifier),
            (AssertTableUUID(uuid=before["table-uuid"]), *still),
            (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(ids)}),),
        )
        return self.read(identifier)[1]

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        # Not with the properties that a table brings along: they may name code.
        return self._files or super()._load_file_io(EMPTY_DICT, location)
