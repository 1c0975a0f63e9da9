"""Opens a warehouse's Iceberg catalog: the one of a SQLite file, which is made where there is none, or a server's."""

from __future__ import annotations

import os
import sqlite3
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pyiceberg.exceptions import NamespaceAlreadyExistsError
from sqlalchemy.exc import IntegrityError, OperationalError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, stop_after_delay, wait_random

from lakebound.durable import make_folder
from lakebound.errors import CatalogRefusedError, NoCatalogError
from lakebound.spec.warehouse import GlueCatalogSpec, RestCatalogSpec, SqlCatalogSpec
from lakebound.tables.iceberg.catalog import CATALOG_NAME, LedgerCatalog
from lakebound.tables.iceberg.catalog_file import explained, say_who_locks, sqlite_file
from lakebound.tables.places import READ_ONLY, Places

if TYPE_CHECKING:
    from lakebound.tables.iceberg.glue import GlueLedgerCatalog
    from lakebound.tables.iceberg.rest import RestLedgerCatalog

_BUSY_TIMEOUT_SECONDS = 60
_making = threading.Lock()

AnyCatalog: TypeAlias = "LedgerCatalog | RestLedgerCatalog | GlueLedgerCatalog"
"""What ``open_catalog`` returns. A ``LedgerCatalog`` alone swaps the metadata file; the others are given updates to commit."""


def open_catalog(places: Places) -> AnyCatalog:
    """Return this process's catalog.

    A SQLite file is made, in WAL mode, when there is none; ``Places.read_only`` makes and changes nothing.

    Raises:
        CatalogUnavailableError: It does not answer.
        CatalogRefusedError: It refuses its user.
        MissingSecretError: A secret is not where warehouses.yaml says.
    """
    with _making:
        catalog = places.warehouse.catalog
        if isinstance(catalog, SqlCatalogSpec) and catalog.is_sqlite:
            return _open_catalog(places.iceberg_catalog_uri, places.iceberg_folder.path, os.getpid())
        return _open_server(places.model_copy(update={"home": Path("/")}), os.getpid())


@cache
def _open_server(places: Places, process: int) -> AnyCatalog:
    """Return the catalog of a process: a connection to a server must not be taken through a fork."""
    match places.warehouse.catalog:
        case SqlCatalogSpec() as sql:
            from lakebound.tables.iceberg.postgresql import open_postgresql

            return open_postgresql(sql, places.iceberg_folder, looks_only=places.looks_only)
        case RestCatalogSpec() as rest:
            from lakebound.tables.iceberg.rest import RestLedgerCatalog

            return RestLedgerCatalog(rest, places.root)
        case GlueCatalogSpec() as glue:
            try:
                from lakebound.tables.iceberg.glue import GlueLedgerCatalog
            except ModuleNotFoundError as exc:
                raise CatalogRefusedError("Glue", "catalog.type", f"{exc}; install pyiceberg[glue] beside Lakebound") from exc
            return GlueLedgerCatalog(glue, places.iceberg_folder)
        case None:
            raise NoCatalogError(places.warehouse.location)


@cache
def _open_catalog(uri: str, warehouse: Path, process: int) -> LedgerCatalog:
    """Return the catalog of a process: a SQLite connection must not be taken through a fork."""
    catalog = _make_catalog(uri, warehouse)
    if path := sqlite_file(uri):
        say_who_locks(catalog.engine, path)
    return catalog


def _make_catalog(uri: str, warehouse: Path) -> LedgerCatalog:
    if READ_ONLY in uri:
        uri += f"&timeout={_BUSY_TIMEOUT_SECONDS}"
        return LedgerCatalog(CATALOG_NAME, uri=uri, warehouse=f"file://{warehouse}", init_catalog_tables="false")
    if not warehouse.exists():
        make_folder(warehouse)
    if path := sqlite_file(uri):
        if not path.exists():
            make_folder(path.parent)  # SQLite syncs the names in it, and not its own
        with explained(path):
            _log_ahead(path)
        uri += ("&" if "?" in uri else "?") + f"timeout={_BUSY_TIMEOUT_SECONDS}"
    return _connect(uri, warehouse)


@retry(
    retry=retry_if_exception_type(sqlite3.OperationalError),
    stop=stop_after_delay(_BUSY_TIMEOUT_SECONDS),
    wait=wait_random(0.01, 0.1),
    reraise=True,
)
def _log_ahead(path: Path) -> None:
    """Put a SQLite file into WAL mode, once no other process writes to it.

    SQLite does not wait its busy timeout here, but gives up at once: to wait with a read lock for a write lock may deadlock
    (https://www.sqlite.org/c3ref/busy_handler.html).
    """
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_SECONDS)
    try:
        connection.execute("PRAGMA journal_mode=WAL")
    finally:
        connection.close()


@retry(retry=retry_if_exception_type(OperationalError), stop=stop_after_attempt(5), wait=wait_random(0.1, 0.5), reraise=True)
def _connect(uri: str, warehouse: Path) -> LedgerCatalog:
    """Make the catalog's tables when they are missing; two processes that start together may both try."""
    return LedgerCatalog(CATALOG_NAME, uri=uri, warehouse=f"file://{warehouse}")


def make_namespace(catalog: AnyCatalog, namespace: str) -> None:
    """Make the namespace unless it is there."""
    try:
        catalog.create_namespace_if_not_exists(namespace)
    except (IntegrityError, NamespaceAlreadyExistsError):
        return
