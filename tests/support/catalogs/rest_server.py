"""An Iceberg REST catalog server of the tests' own: namespaces, tables, commits with requirements, and an OAuth2 endpoint.

It keeps what it knows in memory and writes metadata files as a real one does. A lock makes check and change one step.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableRequest
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import AssertCreate, update_table_metadata

CLIENT_ID = "lakebound"
CLIENT_SECRET = "a secret of the client"
TOKEN = "a static token"
_SEPARATOR = "\x1f"
_OPTIONAL = {"location": None, "partition-spec": None, "write-order": None}
"""Of a request that makes a table."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a request.

    Attributes:
        method: Of the request.
        part: A text in its path.
        status: What is answered in place of the answer; 0: the connection is closed without one. A redirect names the same
            path.
        takes_effect: Whether the request is carried out nevertheless.
    """

    method: str
    part: str
    status: int
    takes_effect: bool = False


class _RefusedError(Exception):
    def __init__(self, status: int, kind: str, message: str) -> None:
        self.status, self.kind = status, kind
        super().__init__(message)


@dataclass
class RestServer:
    """The server. Tables lie below ``warehouse``.

    Attributes:
        warehouse: Address of the folder of tables.
        properties: By which PyIceberg's FileIO reaches it.
        login: ``none``, ``token`` or ``oauth2``.
        token_seconds: How long a token of the OAuth2 endpoint holds.
        vends: What ``config`` of a loaded table holds.
        faults: Each is used for one request.
        requests: Method and path of every request.
        commits: The bodies of those that asked for a commit.
        before_commit: Called within a commit, before its requirements are checked.
        is_away: Whether it closes every connection without an answer.
        own_ids: Whether it gives a new table's columns ids of its own, as Nessie 0.99 does.
    """

    warehouse: str
    properties: dict[str, str] = field(default_factory=dict)
    login: str = "none"
    token_seconds: float = 3600
    vends: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    commits: list[dict[str, Any]] = field(default_factory=list)
    before_commit: Callable[[], None] = lambda: None
    namespaces: set[tuple[str, ...]] = field(default_factory=set)
    tables: dict[tuple[str, ...], tuple[str, TableMetadata]] = field(default_factory=dict)
    delay_seconds: float = 0
    is_away: bool = False
    own_ids: bool = False

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._tokens: dict[str, float] = {}
        self._io: FileIO = load_file_io(self.properties, self.warehouse)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.uri = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self._http.shutdown()
        self._http.server_close()

    def forget_tokens(self) -> None:
        """All tokens that were given out have expired."""
        self._tokens.clear()

    def expire(self, identifier: tuple[str, ...], ids: set[int]) -> None:
        """Remove snapshots, as somebody else's expiry does."""
        with self._lock:
            _, metadata = self.tables[identifier]
            kept = [one for one in metadata.snapshots if one.snapshot_id not in ids]
            self._put(identifier, metadata.model_copy(update={"snapshots": kept}))

    def answer(self, method: str, path: str, query: dict[str, list[str]], headers: Any, body: bytes) -> tuple[int, Any]:
        """Return status and body of the answer; status 0: none."""
        self.requests.append((method, path))
        if self.is_away:
            return 0, None
        if self.delay_seconds:
            time.sleep(self.delay_seconds)
        fault = next((one for one in self.faults if one.method == method and one.part in path), None)
        if fault is not None:
            self.faults.remove(fault)
            if not fault.takes_effect:
                return fault.status, _error(fault.status, "Fault", "as the test wants it")
        try:
            status, found = self._route(method, path, query, headers, body)
        except _RefusedError as exc:
            status, found = exc.status, _error(exc.status, exc.kind, str(exc))
        return (fault.status, _error(fault.status, "Fault", "as the test wants it")) if fault is not None else (status, found)

    def _route(self, method: str, path: str, query: dict[str, list[str]], headers: Any, body: bytes) -> tuple[int, Any]:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts == ["v1", "oauth", "tokens"]:
            return self._give_token(headers, body)
        self._check_login(headers)
        match method, parts[1:]:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "GET", ["namespaces"]:
                return 200, {"namespaces": sorted(self.namespaces)}
            case "POST", ["namespaces"]:
                return self._make_namespace(tuple(json.loads(body)["namespace"]))
            case _, ["namespaces", name]:
                namespace = tuple(name.split(_SEPARATOR))
                if namespace not in self.namespaces:
                    raise _RefusedError(404, "NoSuchNamespaceException", f"no namespace {name}")
                return (200, {"namespace": namespace, "properties": {}}) if method == "GET" else (204, None)
            case "GET", ["namespaces", name, "tables"]:
                found = [one for one in self.tables if one[:-1] == tuple(name.split(_SEPARATOR))]
                return 200, {"identifiers": [{"namespace": one[:-1], "name": one[-1]} for one in found]}
            case "POST", ["namespaces", name, "tables"]:
                return self._create(
                    tuple(name.split(_SEPARATOR)), CreateTableRequest.model_validate({**_OPTIONAL, **json.loads(body)})
                )
            case _, ["namespaces", name, "tables", table]:
                return self._table(method, (*name.split(_SEPARATOR), table), query, body)
        raise _RefusedError(404, "NotFound", f"{method} {path}")

    def _table(self, method: str, identifier: tuple[str, ...], query: dict[str, list[str]], body: bytes) -> tuple[int, Any]:
        if method == "POST":
            self.commits.append(json.loads(body))
            return self._commit(identifier, CommitTableRequest.model_validate_json(body))
        with self._lock:
            if identifier not in self.tables:
                raise _RefusedError(404, "NoSuchTableException", f"no table {'.'.join(identifier)}")
            if method == "DELETE":
                del self.tables[identifier]
                return 204, None
            if method == "HEAD":
                return 204, None
            location, metadata = self.tables[identifier]
        return 200, self._told(location, metadata, query.get("snapshots", ["all"])[0])

    def _told(self, location: str | None, metadata: TableMetadata, snapshots: str = "all") -> dict[str, Any]:
        body = json.loads(metadata.model_dump_json())
        if snapshots == "refs":
            named = {ref["snapshot-id"] for ref in body.get("refs", {}).values()}
            body["snapshots"] = [one for one in body.get("snapshots", []) if one["snapshot-id"] in named]
        return {"metadata-location": location, "metadata": body, "config": self.vends}

    def _make_namespace(self, namespace: tuple[str, ...]) -> tuple[int, Any]:
        with self._lock:
            if namespace in self.namespaces:
                raise _RefusedError(409, "AlreadyExistsException", "the namespace is there")
            self.namespaces.add(namespace)
        return 200, {"namespace": namespace, "properties": {}}

    def _create(self, namespace: tuple[str, ...], wanted: CreateTableRequest) -> tuple[int, Any]:
        if namespace not in self.namespaces:
            raise _RefusedError(404, "NoSuchNamespaceException", f"no namespace {namespace}")
        identifier = (*namespace, wanted.name)
        metadata = new_table_metadata(
            wanted.table_schema,
            wanted.partition_spec or UNPARTITIONED_PARTITION_SPEC,
            wanted.write_order or UNSORTED_SORT_ORDER,
            wanted.location or f"{self.warehouse}/{'/'.join(identifier)}",
            wanted.properties,
        )
        if wanted.stage_create:
            return 200, self._told(None, metadata)
        with self._lock:
            if identifier in self.tables:
                raise _RefusedError(409, "AlreadyExistsException", "the table is there")
            return 200, self._told(self._put(identifier, metadata), metadata)

    def _commit(self, identifier: tuple[str, ...], asked: CommitTableRequest) -> tuple[int, Any]:
        self.before_commit()
        with self._lock:
            location, metadata = self.tables.get(identifier, (None, None))
            is_new = any(isinstance(one, AssertCreate) for one in asked.requirements)
            if metadata is None and not is_new:
                raise _RefusedError(404, "NoSuchTableException", f"no table {'.'.join(identifier)}")
            try:
                for requirement in asked.requirements:
                    requirement.validate(metadata)
            except CommitFailedException as exc:
                raise _RefusedError(409, "CommitFailedException", str(exc)) from exc
            try:
                base = metadata if metadata is not None else _empty()
                changed = update_table_metadata(base, asked.updates, metadata is None, location)
            except ValueError as exc:
                raise _RefusedError(400, "ValidationException", str(exc)) from exc
            if self.own_ids and is_new:
                changed = changed.model_copy(update={"schemas": [_with_own_ids(changed.schema())]})
            return 200, self._told(self._put(identifier, changed), changed)

    def _put(self, identifier: tuple[str, ...], metadata: TableMetadata) -> str:
        number = len(metadata.metadata_log)
        location = f"{metadata.location}/metadata/{number:05d}-{uuid.uuid4()}.metadata.json"
        with self._io.new_output(location).create() as file:
            file.write(metadata.model_dump_json().encode())
        self.tables[identifier] = (location, metadata)
        return location

    def _give_token(self, headers: Any, body: bytes) -> tuple[int, Any]:
        given = base64.b64decode(headers.get("Authorization", "").removeprefix("Basic ")).decode()
        if parse_qs(body.decode()).get("grant_type") != ["client_credentials"] or given != f"{CLIENT_ID}:{CLIENT_SECRET}":
            return 401, {"error": "invalid_client", "error_description": "unknown client"}
        token = uuid.uuid4().hex
        self._tokens[token] = time.monotonic() + self.token_seconds
        return 200, {"access_token": token, "token_type": "bearer", "expires_in": self.token_seconds}

    def _check_login(self, headers: Any) -> None:
        given = headers.get("Authorization", "").removeprefix("Bearer ")
        holds = {"none": True, "token": given == TOKEN, "oauth2": self._tokens.get(given, 0.0) > time.monotonic()}
        if not holds[self.login]:
            raise _RefusedError(401, "NotAuthorizedException", "the token has expired, or is unknown")


def _with_own_ids(schema: Schema) -> Schema:
    """Return a schema in which no column has the id that the client gave it."""
    fields = [one.model_copy(update={"field_id": one.field_id + 100}) for one in schema.fields]
    return Schema(*fields, schema_id=schema.schema_id)


def _empty() -> TableMetadata:
    from pyiceberg.catalog import MetastoreCatalog

    return MetastoreCatalog._empty_table_metadata()


def _error(status: int, kind: str, message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "code": status}}


def _handler(server: RestServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            parts = urlsplit(self.path)
            status, found = server.answer(self.command, parts.path, parse_qs(parts.query), self.headers, body)
            if status == 0:
                self.close_connection = True
                self.connection.close()
                return
            content = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            if 300 <= status < 400:
                self.send_header("Location", self.path)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = do_HEAD = _do

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
