"""The SQL catalog in a PostgreSQL database: one round trip per statement, and its errors in Lakebound's words.

Each statement of the catalog is a transaction of its own. So a commit is one UPDATE that compares and swaps, and where the
connection is lost before its answer, it is unknown whether it took place: the ledger says so.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import IntegrityError, ProgrammingError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random

from lakebound.errors import CatalogRefusedError, CatalogUnavailableError
from lakebound.first_line import first_line
from lakebound.spec.secrets import read_warehouse_secret
from lakebound.spec.warehouse import SqlCatalogSpec
from lakebound.storage.location import Location
from lakebound.storage.postgresql import CONNECTION, SCRAM_ALONE, VERIFYING, refusal_in
from lakebound.tables.iceberg.catalog import CATALOG_NAME, LedgerCatalog

_FIELDS = {"rights": "catalog.username", "login": "catalog.username and catalog.password", "database": "catalog.uri"}


def open_postgresql(spec: SqlCatalogSpec, folder: Location, *, looks_only: bool) -> LedgerCatalog:
    """Return a catalog; its tables are made in the database when they are missing.

    Args:
        spec: The database.
        folder: Below which tables are made.
        looks_only: Change nothing, and make nothing.

    Raises:
        CatalogUnavailableError: The database does not answer.
        CatalogRefusedError: It refuses the user, or what the user may do.
        MissingSecretError: The password is not where warehouses.yaml says.
    """
    return _connect(_engine(spec), folder, "false" if looks_only else "true")


@retry(
    retry=retry_if_exception_type((ProgrammingError, IntegrityError)),
    stop=stop_after_attempt(5),
    wait=wait_random(0.1, 0.5),
    reraise=True,
)
def _connect(engine: Engine, folder: Location, init_catalog_tables: str) -> LedgerCatalog:
    """Make the catalog's tables when they are missing; two processes that start together may both try."""
    uri = engine.url.render_as_string(hide_password=True)
    return LedgerCatalog(
        CATALOG_NAME, root=folder, engine=engine, uri=uri, warehouse=folder.uri, init_catalog_tables=init_catalog_tables
    )


def _engine(spec: SqlCatalogSpec) -> Engine:
    url = make_url(spec.uri).set(drivername="postgresql+psycopg")
    if spec.username is not None:
        url = url.set(username=spec.username)
    engine = create_engine(url, isolation_level="AUTOCOMMIT", connect_args=_arguments(url), pool_pre_ping=False)
    password = spec.password

    def log_in(dialect: Any, record: Any, arguments: list[Any], parameters: dict[str, Any]) -> None:
        if password is not None:
            # Read for each connection: it may have been changed meanwhile, and no address ever holds it.
            parameters["password"] = read_warehouse_secret(password, "catalog.password")

    def explain(context: ExceptionContext) -> None:
        found = _explained(url.render_as_string(hide_password=True), context.original_exception)
        if found is not None:
            raise found from context.original_exception

    event.listen(engine, "do_connect", log_in)
    event.listen(engine, "handle_error", explain)
    return engine


def _arguments(url: URL) -> dict[str, Any]:
    """Return the arguments of each connection: a server that proves nothing gets no password, unless the address says how."""
    proved = url.query.get("sslmode") in VERIFYING or "require_auth" in url.query or url.host is None
    return CONNECTION if proved else {**CONNECTION, "require_auth": SCRAM_ALONE}


def _explained(catalog: str, error: BaseException) -> CatalogUnavailableError | CatalogRefusedError | None:
    """Return what an error of the driver means; None where it is for the caller to know."""
    found, reason = refusal_in(error), first_line(str(error))
    if found is None:
        return None
    if found == "away":
        return CatalogUnavailableError(catalog, reason)
    return CatalogRefusedError(catalog, _FIELDS[found], reason)
