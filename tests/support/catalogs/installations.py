"""An installation whose Iceberg tables are in a catalog of a kind, and an oracle of its own that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from sqlalchemy.engine import URL

from lakebound.spec.warehouse import WarehouseSpec
from lakebound.tables.places import Places
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.catalogs.rest_server import CLIENT_ID, CLIENT_SECRET, TOKEN, RestServer
from tests.support.s3.access import Server
from tests.support.s3.clients import iceberg_properties
from tests.support.streams.pipelines import Pipeline
from tests.support.tables.stored import in_warehouse, tell_key, warehouse_in

_SECRET = "LAKEBOUND_SECRET_OF_CATALOG"
Login = str


@dataclass
class Store:
    """Where tables lie: a folder, or a bucket with what its clients need.

    Attributes:
        location: Address of the warehouse.
        spec: The field ``store`` of the warehouse.
        properties: By which plain PyIceberg reaches it.
    """

    location: str
    spec: dict[str, object] | None = None
    properties: dict[str, str] = field(default_factory=dict)


def store_on(server: Server) -> Store:
    """Return a bucket of its own on an S3 server."""
    tell_key(server)
    bucket = server.new_bucket()
    spec = warehouse_in(server, bucket).store
    assert spec is not None
    return Store(f"s3://{bucket}/lake", spec.model_dump(mode="json", exclude_none=True), iceberg_properties(server))


@dataclass
class Installation:
    """One installation.

    Attributes:
        at: Its places.
        plain: Makes a catalog of PyIceberg's own that knows nothing of Lakebound.
        proxy: Before a PostgreSQL.
        rest: The REST server.
    """

    at: Places
    plain: Callable[[], Catalog]
    proxy: PostgreSQLProxy | None = None
    rest: RestServer | None = None

    def holding(self, pipeline: Pipeline) -> Pipeline:
        """Return a pipeline whose tables are in this installation; ``plain`` reads them for the oracle."""
        return replace(in_warehouse(pipeline, self.at.warehouse), plain_catalog=self.plain)

    def close(self) -> None:
        """End what was started for it."""
        if self.proxy is not None:
            self.proxy.close()
        if self.rest is not None:
            self.rest.close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Inside the block, the catalog cannot be reached."""
        if self.proxy is not None:
            with self.proxy.away():
                yield
            return
        assert self.rest is not None
        self.rest.is_away = True
        try:
            yield
        finally:
            self.rest.is_away = False

    def offsets(self, table: str) -> list[int]:
        """Return the offset of every row as plain PyIceberg reads it, sorted: doubles show."""
        rows = self.plain().load_table(table).scan(selected_fields=("_kafka",)).to_arrow()
        return sorted(rows["_kafka"].combine_chunks().field("offset").to_pylist())


def in_postgresql(server: PostgreSQL, home: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """Return an installation with a database of its own, reached by way of a proxy."""
    monkeypatch.setenv(_SECRET, PASSWORD)
    proxy, database = PostgreSQLProxy(server), server.new_database()
    catalog = {"type": "sql", "uri": f"postgresql://127.0.0.1:{proxy.port}/{database}", "username": USER}
    url = URL.create("postgresql+psycopg", USER, PASSWORD, "127.0.0.1", proxy.port, database).render_as_string(
        hide_password=False
    )
    return Installation(
        _places(home, store, {**catalog, "password": {"env": _SECRET}}),
        lambda: SqlCatalog("ice", uri=url, warehouse=f"{store.location}/iceberg", **store.properties),
        proxy=proxy,
    )


def in_rest(home: Path, store: Store, monkeypatch: pytest.MonkeyPatch, login: Login = "token") -> Installation:
    """Return an installation with a REST catalog of its own."""
    warehouse = store.location if "://" in store.location else f"file://{store.location}"
    server = RestServer(f"{warehouse}/iceberg", store.properties, login=login)
    catalog: dict[str, object] = {"type": "rest", "uri": server.uri}
    plain = {"uri": server.uri, **store.properties}
    if login == "token":
        monkeypatch.setenv(_SECRET, TOKEN)
        catalog["token"] = {"env": _SECRET}
        plain["token"] = TOKEN
    elif login == "oauth2":
        monkeypatch.setenv(_SECRET, CLIENT_SECRET)
        uri = f"{server.uri}/v1/oauth/tokens"
        catalog["oauth2"] = {"server_uri": uri, "client_id": CLIENT_ID, "client_secret": {"env": _SECRET}}
    return Installation(_places(home, store, catalog), lambda: RestCatalog("plain", **plain), rest=server)


def _places(home: Path, store: Store, catalog: dict[str, object]) -> Places:
    spec = {"location": store.location, "catalog": catalog, **({"store": store.spec} if store.spec else {})}
    return Places(home=home, warehouse=WarehouseSpec.model_validate(spec))
