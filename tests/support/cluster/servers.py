"""A versitygw, and Iceberg's own REST catalog over a PostgreSQL: real servers, each a process that ends with the test."""

from __future__ import annotations

import os
import secrets
import uuid
from pathlib import Path

from pyiceberg.catalog.rest import RestCatalog

from lakebound.control import processes
from lakebound.control.ports import free_port, is_open
from lakebound.spec.warehouse import WarehouseSpec
from lakebound.tables.places import Places
from tests.support.catalogs.installations import Installation, Store
from tests.support.catalogs.postgresql import PASSWORD, USER, PostgreSQL, PostgreSQLProxy
from tests.support.cluster.parts import CATALOG_JARS, VERSITYGW
from tests.support.s3.access import AccessKey
from tests.support.waiting import wait_until

_START_SECONDS = 120.0
_SOURCE = Path(__file__).parents[1] / "catalogs" / "reference" / "RestCatalog.java"


class VersityGW:
    """An S3 server on a folder; clients are told of it as of the tests' own server."""

    region = "us-east-1"

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        self.access_key = AccessKey("lakebound", secrets.token_urlsafe(24))
        self._buckets = folder / "buckets"
        self._buckets.mkdir(parents=True)
        keys = {"ROOT_ACCESS_KEY": "lakebound", "ROOT_SECRET_KEY": self.access_key.secret_access_key}
        command = [str(VERSITYGW), "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(self._buckets)]
        log = folder / "versitygw.log"
        self._process = processes.start("versitygw", command, log, {**os.environ, **keys}, folder=folder)
        wait_until(lambda: is_open(port), _START_SECONDS, f"versitygw ({log})")

    def new_bucket(self, prefix: str = "bucket") -> str:
        """Create an empty bucket; return its name."""
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        (self._buckets / name).mkdir()
        return name

    def stop(self) -> None:
        """End it."""
        processes.kill(self._process)


class ReferenceCatalog:
    """Iceberg's REST catalog. It asks nobody for a login.

    Args:
        folder: For its log.
        store: Where tables lie.
        server: The store's server.
        database: Where it keeps which metadata file is a table's.
    """

    def __init__(self, folder: Path, store: Store, server: VersityGW, database: PostgreSQL) -> None:
        port = free_port()
        self._proxy = PostgreSQLProxy(database)
        self.uri = f"http://127.0.0.1:{port}"
        environment = {
            "REST_HOST": "127.0.0.1",
            "REST_PORT": str(port),
            "CATALOG_URI": f"jdbc:postgresql://127.0.0.1:{self._proxy.port}/{database.new_database()}",
            "CATALOG_JDBC_USER": USER,
            "CATALOG_JDBC_PASSWORD": PASSWORD,
            "CATALOG_WAREHOUSE": f"{store.location}/iceberg",
            "CATALOG_IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
            "CATALOG_S3_ENDPOINT": server.endpoint,
            "CATALOG_S3_PATH__STYLE__ACCESS": "true",
            "AWS_REGION": server.region,
            "AWS_ACCESS_KEY_ID": server.access_key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": server.access_key.secret_access_key,
        }
        command = ["java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", f"{CATALOG_JARS}/*", str(_SOURCE)]
        log = folder / "catalog.log"
        self._process = processes.start("catalog", command, log, {**os.environ, **environment}, folder=folder)
        wait_until(lambda: is_open(port), _START_SECONDS, f"Iceberg's REST catalog ({log})")

    def installation(self, home: Path, store: Store) -> Installation:
        """Return an installation whose Iceberg tables are in it."""
        catalog = {"type": "rest", "uri": self.uri}
        spec = WarehouseSpec.model_validate({"location": store.location, "store": store.spec, "catalog": catalog})
        plain = {"uri": self.uri, **store.properties}
        return Installation(Places(home=home, warehouse=spec), lambda: RestCatalog("plain", **plain))

    def stop(self) -> None:
        """End it."""
        processes.kill(self._process)
        self._proxy.close()
