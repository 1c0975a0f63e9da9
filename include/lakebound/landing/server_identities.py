"""What the servers are that pipelines write to, so that two names of one server are found."""

from __future__ import annotations

import contextlib
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaException

from lakebound.errors import LakeboundError
from lakebound.landing.kafka_clients import make_admin
from lakebound.landing.kafka_settings import client_config
from lakebound.landing.to_stores.open_store import connect_store
from lakebound.spec.claims import named, servers_of, store_server, written_topics
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.secret_bindings import servers_of_brokers
from lakebound.spec.to_stores import ToStoreSpec

ASK_SECONDS = 5.0


def server_identities(specs: Iterable[PipelineSpec]) -> dict[str, tuple[str, ...]]:
    """Return by what else each server is known: the id that it tells, or its address; servers that are not found are left out.

    Args:
        specs: The pipelines.
    """
    writing = [spec for spec in specs if spec.to_stores or written_topics(spec)]
    servers = sorted({one for spec in writing for cluster in servers_of(spec) for one in cluster})
    clusters = {spec.connection.model_dump_json(): spec.connection for spec in writing if written_topics(spec)}
    stores = {
        (store_server(one), one.login): (one, f"to_stores[{at}]") for spec in writing for at, one in enumerate(spec.to_stores)
    }
    with ThreadPoolExecutor(8) as pool:
        addresses = pool.map(_address, servers)
        cluster_ids = pool.map(_cluster_id, clusters.values())
        store_ids = pool.map(_store_id, *zip(*stores.values(), strict=True)) if stores else ()
        told: defaultdict[str, set[str]] = defaultdict(set)
        for connection, cluster in zip(clusters.values(), cluster_ids, strict=True):
            for one in servers_of_brokers(connection.bootstrap_servers) if cluster else ():
                told[named(one)].add(f"kafka {cluster}")
        for (server, _), store in zip(stores, store_ids, strict=True):
            if store:
                told[server].add(store)
        return known_by(told, {server: address for server, address in zip(servers, addresses, strict=True) if address})


def known_by(told: Mapping[str, Iterable[str]], addresses: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return by what each server is known.

    Its address counts only as far as a server at that address tells no id: many may be reached by one address, through a proxy.

    Args:
        told: The ids that servers tell.
        addresses: Where their names lead.
    """
    in_doubt = {address for server, address in addresses.items() if not told.get(server)}
    found: dict[str, tuple[str, ...]] = {}
    for server in sorted({*told, *addresses}):
        address: Sequence[str] = [addresses[server]] if addresses.get(server) in in_doubt else []
        found[server] = (*sorted(told.get(server, ())), *address)
    return {server: names for server, names in found.items() if names}


def _address(server: str) -> str | None:
    """Return the first address of a server: of two names with the same addresses it is the same."""
    at, slash, database = server.partition("/")
    host, _, port = at.rpartition(":")
    with contextlib.suppress(OSError, UnicodeError, ValueError):
        known = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        return f"{min(str(one[4][0]) for one in known)}:{port}{slash}{database}"
    return None


def _cluster_id(connection: ConnectionSpec) -> str | None:
    with contextlib.suppress(LakeboundError, KafkaException, TimeoutError):
        answer = make_admin(client_config(connection)).describe_cluster(request_timeout=ASK_SECONDS)
        return str(answer.result(timeout=ASK_SECONDS + 0.5).cluster_id or "") or None
    return None


def _store_id(spec: ToStoreSpec, field: str) -> str | None:
    """Return what a store's server says that it is; None where it does not answer or does not tell."""
    store = connect_store(spec, field)
    try:
        return store.server_id()
    except LakeboundError:
        return None
    finally:
        store.close()
