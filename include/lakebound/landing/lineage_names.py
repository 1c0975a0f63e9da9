"""What OpenLineage calls topics and tables: a namespace and a name, in which no login ever stands. Pure.

Source: https://openlineage.io/docs/spec/naming
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from lakebound.spec.table import TableSpec
from lakebound.spec.warehouse import GlueCatalogSpec, RestCatalogSpec, SqlCatalogSpec

DEFAULT_KAFKA_PORT = "9092"
_BROKER = re.compile(r"(?:\w+://)?(\[[^\]]+\]|[^:/]+)(?::(\d+))?")


class DatasetName(NamedTuple):
    """How a dataset is known to everybody who tells lineage of it."""

    namespace: str
    name: str


def topic_name(bootstrap_servers: str, topic: str) -> DatasetName:
    """Return the name of a Kafka topic. Of several brokers the first stands for the cluster.

    Args:
        bootstrap_servers: ``host:port,host:port``.
        topic: The topic.

    Raises:
        ValueError: No broker is named.
    """
    first = next((one.strip() for one in bootstrap_servers.split(",") if one.strip()), "")
    found = _BROKER.fullmatch(first.rpartition("@")[2])
    if found is None:
        raise ValueError(f"{bootstrap_servers!r} names no broker such as host:9092")
    return DatasetName(f"kafka://{found[1]}:{found[2] or DEFAULT_KAFKA_PORT}", topic)


def folder_name(address: str) -> DatasetName:
    """Return the name of the folder that a table is in.

    Args:
        address: An absolute path, ``file:///PATH`` (Hadoop writes ``file:/PATH``), or an address in an object store, such as
            ``s3://BUCKET/KEY``.

    Raises:
        ValueError: It is none of these.
    """
    if address.startswith("/"):
        return DatasetName("file", posixpath.normpath("/" + address.lstrip("/")))
    parts = urlsplit(address)
    if parts.scheme == "file":
        return DatasetName("file", posixpath.normpath("/" + address.removeprefix("file:").lstrip("/")))
    bucket = parts.netloc.rpartition("@")[2]
    if not parts.scheme or not bucket:
        raise ValueError("the address of a table is neither a path nor in a bucket")
    return DatasetName(f"{parts.scheme}://{bucket}", parts.path.strip("/") or "/")


def catalog_name(catalog: SqlCatalogSpec | RestCatalogSpec | GlueCatalogSpec, table: TableSpec) -> DatasetName:
    """Return the name that an Iceberg table has in its catalog: the other name of its folder.

    Args:
        catalog: The catalog; of its address, login, query and fragment are left out.
        table: The table.
    """
    if isinstance(catalog, GlueCatalogSpec):
        return DatasetName(f"arn:aws:glue:{catalog.region}", f"table/{table.namespace}/{table.short_name}")
    parts = urlsplit(catalog.uri)
    # urlunsplit would drop the slashes of an address without a host, such as that of SQLite.
    address = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
    return DatasetName(address, f"{table.namespace}.{table.short_name}")
