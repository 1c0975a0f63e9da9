"""The secrets that a pipeline names, and the servers to which each is sent. Pure."""

from __future__ import annotations

from lakebound.spec.connection import ConnectionSpec, SaslSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.postgres import PostgresSpec
from lakebound.spec.redis import RedisSpec
from lakebound.spec.secret_bindings import SecretUse, server_of, server_of_address, servers_of_brokers
from lakebound.spec.yaml_source import Keys


def secret_uses(spec: PipelineSpec) -> dict[Keys, SecretUse]:
    """Return each secret of a pipeline, by its keys in the YAML."""
    return {keys: SecretUse(ref, _servers(spec, keys)) for keys, ref in spec.secrets.items()}


def broker_servers(connection: ConnectionSpec) -> tuple[str, ...]:
    """Return the servers to which a login of Kafka is sent."""
    return servers_of_brokers(connection.bootstrap_servers)


def token_servers(sasl: SaslSpec) -> tuple[str, ...]:
    """Return the server to which a client's secret is sent for a token."""
    return (server_of_address(sasl.token_url or ""),)


def server_of_login(server: PostgresSpec | RedisSpec) -> tuple[str, ...]:
    """Return the server to which a password is sent."""
    return (server_of(server.host, server.port),)


def _servers(spec: PipelineSpec, keys: Keys) -> tuple[str, ...]:
    if keys[0] == "connection":
        sasl = spec.connection.sasl
        return token_servers(sasl) if sasl and keys[-1] == "client_secret" else broker_servers(spec.connection)
    server: PostgresSpec | RedisSpec | None
    if keys[0] == "reference":
        server = spec.reference[str(keys[1])].postgres
    else:
        store = spec.to_stores[int(keys[1])]
        server = store.postgres or store.redis
    return server_of_login(server) if server is not None else ()
