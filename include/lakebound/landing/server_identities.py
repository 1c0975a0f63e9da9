"""What the servers are that pipelines write to, so that two names of one server are found."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from confluent_kafka import KafkaException

from lakebound.errors import LakeboundError
from lakebound.landing.kafka_clients import make_admin
from lakebound.landing.kafka_settings import client_config
from lakebound.spec.claims import named, servers_of, written_topics
from lakebound.spec.connection import ConnectionSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.secret_bindings import servers_of_brokers

ASK_SECONDS = 5.0


def server_identities(specs: Iterable[PipelineSpec]) -> dict[str, str]:
    """Return the id of each cluster, and the address of each other server; servers that cannot be found are left out.

    Args:
        specs: The pipelines.
    """
    writing = [spec for spec in specs if spec.to_stores or written_topics(spec)]
    servers = sorted({one for spec in writing for cluster in servers_of(spec) for one in cluster})
    clusters = {spec.connection.model_dump_json(): spec.connection for spec in writing if written_topics(spec)}
    with ThreadPoolExecutor(8) as pool:
        addresses = pool.map(_address, servers)
        ids = pool.map(_cluster_id, clusters.values())
        found = {server: address for server, address in zip(servers, addresses, strict=True) if address}
        for connection, cluster in zip(clusters.values(), ids, strict=True):
            if cluster:
                found |= {named(one): f"kafka {cluster}" for one in servers_of_brokers(connection.bootstrap_servers)}
    return found


def _address(server: str) -> str | None:
    """Return the first address of a server: of two names with the same addresses it is the same."""
    host, _, port = server.rpartition(":")
    with contextlib.suppress(OSError, UnicodeError, ValueError):
        known = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        return f"{min(str(one[4][0]) for one in known)}:{port}"
    return None


def _cluster_id(connection: ConnectionSpec) -> str | None:
    with contextlib.suppress(LakeboundError, KafkaException, TimeoutError):
        answer = make_admin(client_config(connection)).describe_cluster(request_timeout=ASK_SECONDS)
        return str(answer.result(timeout=ASK_SECONDS + 0.5).cluster_id or "") or None
    return None
