"""An Iceberg REST catalog. The server writes the metadata; a commit is one request, with what must hold of the table.

The history of a table is asked for once. A commit's answer brings all snapshots again, be they thousands: only the current one
is parsed, and what was committed is added to the history that is known.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import from_json, to_json
from pyiceberg.catalog.rest import Endpoints, RestCatalog
from pyiceberg.catalog.rest.response import _handle_non_200_response
from pyiceberg.exceptions import BadRequestError, CommitFailedException, NoSuchTableError
from pyiceberg.io import FileIO
from pyiceberg.table import CommitTableRequest, CommitTableResponse, Table, TableIdentifier
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import (
    AddSchemaUpdate,
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    RemoveSnapshotRefUpdate,
    RemoveSnapshotsUpdate,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)
from pyiceberg.typedef import EMPTY_DICT, Identifier, Properties
from requests import HTTPError, Response, Session

from lakebound.errors import CatalogRefusedError, CatalogUnavailableError
from lakebound.spec.warehouse import RestCatalogSpec
from lakebound.storage.location import Location
from lakebound.tables.iceberg.catalog import CATALOG_NAME
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.iceberg.rest_session import CatalogSession
from lakebound.tables.iceberg.store_files import StoreFileIO

_HELD_TAG = "lakebound-rewind"
_DELEGATION = "X-Iceberg-Access-Delegation"
_KEYS = frozenset({"s3.access-key-id", "s3.session-token", "s3.remote-signing-enabled", "gcs.oauth2.token", "adls.sas-token"})


class RestLedgerCatalog(RestCatalog):
    """A RestCatalog that remembers, per table, the history that it has read or written. Threads may share it.

    Args:
        spec: The catalog.
        root: Folder below which the warehouse's tables are; its store is that of the tables.
    """

    def __init__(self, spec: RestCatalogSpec, root: Location) -> None:
        self._spec = spec
        self._files = None if root.is_local else StoreFileIO(root.store)
        self._known: dict[Identifier, tuple[str, TableMetadata]] = {}
        self._lock = threading.Lock()
        named = {"uri": spec.uri, "warehouse": spec.warehouse, "prefix": spec.prefix}
        super().__init__(CATALOG_NAME, **{name: value for name, value in named.items() if value is not None})

    def pointer(self, identifier: Identifier) -> str | None:
        """Return where the table's metadata is; None where there is no such table."""
        try:
            return self.read(identifier, "refs")[0]
        except NoSuchTableError:
            return None

    def read(self, identifier: Identifier, snapshots: str = "all") -> tuple[str, Body]:
        """Return where the table's metadata is, and its JSON as the catalog tells it.

        Args:
            identifier: Namespace and name of the table.
            snapshots: ``all``, or ``refs`` for those alone that a branch or tag names.

        Raises:
            NoSuchTableError: There is none.
            CatalogUnavailableError: No answer.
        """
        answer = self._load(identifier, snapshots)
        return str(answer["metadata-location"]), answer["metadata"]

    def vended(self, identifier: Identifier) -> frozenset[str]:
        """Return the names of the keys of a store that the catalog hands out for a table; Lakebound does not ask for them."""
        answer = self._load(identifier, "refs")
        handed = [answer.get("config") or {}, *(one["config"] for one in answer.get("storage-credentials") or ())]
        return frozenset(name for config in handed for name in config if name in _KEYS)

    def load_table(self, identifier: str | Identifier) -> Table:
        """Return a table with all of its snapshots. Its metadata is shared: never change it."""
        named = self.identifier_to_tuple(identifier)
        location, body = self.read(named)
        return Table(
            identifier=named,
            metadata=self._remember(named, location, body),
            metadata_location=location,
            io=self._load_file_io(body.get("properties", {}), location),
            catalog=self,
        )

    def metadata_at(self, identifier: Identifier, location: str, io: FileIO) -> TableMetadata:
        """Return the metadata that the catalog named when it named a file; a newer one where the table has moved on.

        Args:
            identifier: Namespace and name of the table.
            location: Address of the metadata file.
            io: Not used: the catalog knows.
        """
        with self._lock:
            known = self._known.get(identifier)
        if known is not None and known[0] == location:
            return known[1]
        return self.load_table(identifier).metadata

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit updates in one request. What it answers has the current snapshot alone.

        Args:
            table: Handle on whose metadata the updates are based.
            requirements: What must hold of the table's current metadata.
            updates: Changes of the metadata, in order.

        Raises:
            CommitFailedException: A requirement does not hold. It may be that of a request that a gateway has repeated.
            CatalogUnavailableError: Whether it was committed is unknown.
        """
        identifier = table.name()
        added = [update.snapshot for update in updates if isinstance(update, AddSnapshotUpdate)]
        rewound = any(one.parent_snapshot_id not in (None, table.metadata.current_snapshot_id) for one in added)
        sent = (*_held(added[0].parent_snapshot_id), *updates, *_let_go()) if rewound else updates
        try:
            body = self._post_commit(identifier, requirements, sent)
        except BadRequestError as exc:
            if not rewound:
                raise
            raise CommitFailedException(f"the snapshot to which it goes back has expired: {exc}") from exc
        shown = {one["snapshot-id"] for one in body["metadata"].get("snapshots", [])}
        if not shown.issuperset(one.snapshot_id for one in added):
            raise CatalogUnavailableError(self._spec.uri, "its answer to the commit does not show the snapshot of the commit")
        location, metadata = str(body["metadata-location"]), _current_alone(body["metadata"])
        self._add(identifier, table, location, metadata, is_append=_is_append_of(updates, metadata))
        return CommitTableResponse.model_construct(metadata=metadata, metadata_location=location)

    def remove_snapshots(self, identifier: Identifier, before: Body, ids: Iterable[int]) -> Body:
        """Expire snapshots, if branches and tags still are where they were, and return the metadata after it.

        Args:
            identifier: Namespace and name of the table.
            before: Metadata from which it was told that these snapshots may go.
            ids: Of the snapshots.

        Raises:
            CommitFailedException: The table has moved on.
            CatalogUnavailableError: Whether they are gone is unknown.
        """
        refs = before.get("refs") or {}
        requirements = (AssertTableUUID(uuid=before["table-uuid"]), *(_is_still(name, ref) for name, ref in refs.items()))
        updates = (RemoveSnapshotsUpdate.model_validate({"snapshot-ids": sorted(ids)}),)
        after: Body = self._post_commit(identifier, requirements, updates)["metadata"]
        return after

    def _post_commit(
        self, identifier: Identifier, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> dict[str, Any]:
        request = CommitTableRequest(
            identifier=TableIdentifier.model_validate({"namespace": identifier[:-1], "name": identifier[-1]}),
            requirements=requirements,
            updates=updates,
        )
        answer = self._session.post(self._table_url(identifier), data=_told(request))
        self._checked(answer, {404: NoSuchTableError, 409: CommitFailedException})
        body: dict[str, Any] = from_json(answer.content)
        return body

    def _create_session(self) -> Session:
        session = CatalogSession(self._spec)
        self._config_headers(session)
        # Keys that the catalog would hand out are not asked for: the data lane has those of the warehouse.
        session.headers.pop(_DELEGATION, None)
        return session

    def _load_file_io(self, properties: Properties = EMPTY_DICT, location: str | None = None) -> FileIO:
        return self._files or super()._load_file_io({}, location)

    def _load(self, identifier: Identifier, snapshots: str) -> dict[str, Any]:
        answer = self._session.get(self._table_url(identifier), params={"snapshots": snapshots})
        self._checked(answer, {404: NoSuchTableError})
        body: dict[str, Any] = from_json(answer.content)
        if not body.get("metadata-location"):
            raise CatalogRefusedError(
                self._spec.uri, "catalog.uri", f"it does not say where the metadata of {'.'.join(identifier)} is"
            )
        return body

    def _table_url(self, identifier: Identifier) -> str:
        return self.url(Endpoints.load_table, prefixed=True, **self._split_identifier_for_path(identifier))

    def _checked(self, answer: Response, errors: dict[int, type[Exception]]) -> None:
        try:
            answer.raise_for_status()
        except HTTPError as exc:
            _handle_non_200_response(exc, errors)

    def _remember(self, identifier: Identifier, location: str, body: Body) -> TableMetadata:
        with self._lock:
            known = self._known.get(identifier)
            if known is None or known[0] != location:
                # Of a snapshot only its parent ever changes, so those that are known are not parsed again.
                seen = {_key(one): one for one in known[1].snapshots} if known is not None else {}
                told = [((one["snapshot-id"], one.get("parent-snapshot-id")), one) for one in body.get("snapshots", [])]
                parsed = TableMetadataUtil.parse_obj({**body, "snapshots": [one for key, one in told if key not in seen]})
                seen |= {_key(one): one for one in parsed.snapshots}
                found = [seen[key] for key, _ in told]
                known = self._known[identifier] = (location, parsed.model_copy(update={"snapshots": found}))
            return known[1]

    def _add(self, identifier: Identifier, table: Table, location: str, metadata: TableMetadata, *, is_append: bool) -> None:
        """Note what was committed on what is known, where that is what the commit was made on."""
        with self._lock:
            known = self._known.pop(identifier, None)
            if known is not None and is_append and known[0] == table.metadata_location:
                snapshots = [*known[1].snapshots, *metadata.snapshots]
                log = [*known[1].snapshot_log, *metadata.snapshot_log]
                self._known[identifier] = (location, metadata.model_copy(update={"snapshots": snapshots, "snapshot_log": log}))


def _told(request: CommitTableRequest) -> bytes:
    """Return a commit as it is sent. Older servers want the highest id of a schema's columns, which PyIceberg leaves out."""
    if not any(isinstance(update, AddSchemaUpdate) for update in request.updates):
        return request.model_dump_json(by_alias=True, exclude_none=True).encode()
    body = request.model_dump(mode="json", by_alias=True, exclude_none=True)
    for update, told in zip(request.updates, body["updates"], strict=True):
        if isinstance(update, AddSchemaUpdate):
            told["last-column-id"] = update.schema_.highest_field_id
    return to_json(body)


def _key(snapshot: Snapshot) -> tuple[int, int | None]:
    return snapshot.snapshot_id, snapshot.parent_snapshot_id


def _current_alone(body: Body) -> TableMetadata:
    """Return slim metadata, with the newest line of the snapshot log."""
    current = body.get("current-snapshot-id")
    return TableMetadataUtil.parse_obj(
        {
            **body,
            "snapshots": [one for one in body.get("snapshots", []) if one["snapshot-id"] == current],
            "snapshot-log": [one for one in body.get("snapshot-log", [])[-1:] if one["snapshot-id"] == current],
        }
    )


def _is_append_of(updates: Sequence[TableUpdate], metadata: TableMetadata) -> bool:
    added = [update.snapshot.snapshot_id for update in updates if isinstance(update, AddSnapshotUpdate)]
    return added == [metadata.current_snapshot_id]


def _held(snapshot: int | None) -> tuple[TableUpdate, ...]:
    """Return an update that a catalog refuses where the snapshot has expired; it does not ask whether a parent is there."""
    tag = {"ref-name": _HELD_TAG, "snapshot-id": snapshot, "type": SnapshotRefType.TAG}
    return (SetSnapshotRefUpdate.model_validate(tag),)


def _let_go() -> tuple[TableUpdate, ...]:
    return (RemoveSnapshotRefUpdate.model_validate({"ref-name": _HELD_TAG}),)


def _is_still(name: str, ref: dict[str, Any]) -> TableRequirement:
    return AssertRefSnapshotId.model_validate({"ref": name or MAIN_BRANCH, "snapshot-id": ref["snapshot-id"]})
