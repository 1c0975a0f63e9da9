"""What pipelines write to, so that two of them are found that write to one thing under whatever names. Pure.

A server is known by the name in the YAML; who can ask (``lakebound check``) gives its id or its address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping, Sequence

from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.real_time import REAL_TIME
from lakebound.spec.secret_bindings import is_of_this_machine, server_of, servers_of_brokers
from lakebound.spec.table import TableSpec
from lakebound.spec.to_stores import ToStoreSpec
from lakebound.spec.warehouse import DEFAULT_WAREHOUSE

TABLE, TOPIC, STORE = "table ", "target topic ", "store "
_PUBLIC = "public"


def claims_of(spec: PipelineSpec, servers: Mapping[str, str]) -> Iterator[str]:
    """Yield what a pipeline writes to, and its own name.

    Args:
        spec: The pipeline.
        servers: By what each server is known (``one_name_per_server``).
    """
    yield f"pipeline {spec.pipeline}"
    yield from (table_claim(spec, table) for table in tables_of(spec))
    brokers = servers_of_brokers(spec.connection.bootstrap_servers)
    cluster = servers[named(brokers[0])] if brokers else ""
    yield from (f"{TOPIC}{topic} at {cluster}" for topic in written_topics(spec))
    yield from (f"{STORE}{store_name(one)} at {servers[store_server(one)]}" for one in spec.to_stores)


def servers_of(spec: PipelineSpec) -> tuple[tuple[str, ...], ...]:
    """Return the servers that a pipeline writes to; those of one cluster together."""
    brokers = tuple(map(named, servers_of_brokers(spec.connection.bootstrap_servers)))
    return (brokers, *((store_server(one),) for one in spec.to_stores))


def one_name_per_server(
    clusters: Iterable[tuple[str, ...]], identities: Mapping[str, Sequence[str]] | None = None
) -> dict[str, str]:
    """Return one name for each server: servers of one cluster, or of one identity, have the same.

    Args:
        clusters: Servers that are named together.
        identities: By what else a server is known.
    """
    names: dict[str, str] = {}
    known_as: dict[str, list[str]] = {}
    for cluster in filter(None, clusters):
        together = [*cluster, *(known for one in cluster if identities for known in identities.get(one, ()))]
        # The shortest way to say it: every name so far of any of them becomes the name of all.
        taken = sorted({names[one] for one in together if one in names}) or list(together[:1])
        renamed = [one for name in taken[1:] for one in known_as.pop(name, [])]
        added = [*(one for one in dict.fromkeys(together) if one not in names), *renamed]
        names |= dict.fromkeys(added, taken[0])
        known_as.setdefault(taken[0], []).extend(added)
    return names


def written_topics(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the topics that a pipeline writes to, its quarantine's included; nobody else can name its ledger's."""
    quarantine = spec.freshness == REAL_TIME or spec.real_time.quarantine_topic is not None
    return (*(one.topic for one in spec.to_topics), *((spec.quarantine_topic,) if quarantine else ()))


def tables_of(spec: PipelineSpec) -> tuple[TableSpec, ...]:
    """Return the tables that a pipeline writes to."""
    return (*spec.tables, spec.quarantine_table)


def table_claim(spec: PipelineSpec, table: TableSpec) -> str:
    """Return by what two files are found to name one table: in two warehouses, one name stands for two tables."""
    there = "" if spec.warehouse == DEFAULT_WAREHOUSE else f" in warehouse {spec.warehouse}"
    return f"{TABLE}{table.format}:{table.namespace}.{table.short_name}{there}"


def store_name(store: ToStoreSpec) -> str:
    """Return the name of a store; a table of PostgreSQL without a schema is in ``public``."""
    is_bare = store.format == "postgres" and "." not in store.name
    return f"{store.format}:{_PUBLIC}.{store.name}" if is_bare else store.id


def store_server(store: ToStoreSpec) -> str:
    """Return the server of a store with its database, as they are named: a pooler leads each database to another server."""
    server = store.postgres or store.redis
    assert server is not None
    return f"{named(server_of(server.host, server.port))}/{server.database}"


def named(server: str) -> str:
    """Return a server's name as it is compared: names are the same in capitals, and this machine has several."""
    host, _, port = server.lower().rpartition(":")
    port = port.lstrip("0") or port
    if is_of_this_machine(server.lower()):
        return f"localhost:{port}"
    try:
        return server_of(str(ipaddress.ip_address(host.strip("[]"))), int(port))
    except ValueError:
        return f"{host.rstrip('.')}:{port}"
