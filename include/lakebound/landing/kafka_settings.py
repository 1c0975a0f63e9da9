"""Settings of a connection's Kafka clients: for librdkafka, which the driver's Python uses, and for Java's, which is Spark's.

One place for both, so that each way to log in works in every command and in both engines. The results hold secrets: never log
them.
"""

from __future__ import annotations

from collections.abc import Mapping

from lakebound.landing.jaas import jaas_quoted
from lakebound.landing.tls_files import check_authority, read_chain, read_key
from lakebound.spec.connection import ConnectionSpec, SaslSpec, SecretRef
from lakebound.spec.named_files import certificate_path
from lakebound.spec.secret_uses import broker_servers, token_servers
from lakebound.spec.secrets import read_secret

_SECURITY = "org.apache.kafka.common.security"
_LOGIN_MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
}
_TOKEN_HANDLER = f"{_SECURITY}.oauthbearer.OAuthBearerLoginCallbackHandler"
_TOKEN_TIMEOUT_MS = "10000"

_OF_CONSUMERS = ("fetch.max.bytes", "fetch.max.wait.ms", "fetch.min.bytes", "max.partition.fetch.bytes")
_LIBRDKAFKA_NAMES = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "metadata.max.age.ms": "topic.metadata.refresh.interval.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
"""What librdkafka calls the settings for which it has a name of its own."""
_NOT_JAVAS = ("broker.address.family", "socket.keepalive.enable")


def client_config(connection: ConnectionSpec) -> dict[str, str]:
    """Return librdkafka's settings of the connection, for a client of any kind.

    Raises:
        MissingSecretError: A secret is not where the connection says, or a file of TLS cannot be used.
        ForbiddenSecretError: A secret may not be read on this machine.
    """
    config = {"bootstrap.servers": connection.bootstrap_servers, "security.protocol": connection.security_protocol}
    config |= {name: value for name, value in _chosen(connection, _LIBRDKAFKA_NAMES).items() if name not in _consumer_names()}
    if connection.tls_ca_file:
        config["ssl.ca.location"] = check_authority(connection.tls_ca_file, "tls_ca_file")
    if connection.tls_certificate_file:
        read_chain(connection.tls_certificate_file, "tls_certificate_file")
        config["ssl.certificate.location"] = str(certificate_path(connection.tls_certificate_file))
        config["ssl.key.pem"] = _private_key(connection)
    if connection.sasl:
        config |= _librdkafka_login(connection.sasl, broker_servers(connection))
    return config


def consumer_config(connection: ConnectionSpec) -> dict[str, str]:
    """Return librdkafka's settings of the connection for a consumer; raises what ``client_config`` raises."""
    chosen = _chosen(connection, _LIBRDKAFKA_NAMES)
    return {**client_config(connection), **{name: chosen[name] for name in _consumer_names() & chosen.keys()}}


def java_config(connection: ConnectionSpec) -> dict[str, str]:
    """Return the settings of Kafka's Java client for the connection; raises what ``client_config`` raises.

    A private key goes into the settings as text, decrypted: as a password does, it exists in the processes that read alone.
    """
    config = {"bootstrap.servers": connection.bootstrap_servers, "security.protocol": connection.security_protocol}
    config |= {name: value for name, value in _chosen(connection, {}).items() if name not in _NOT_JAVAS}
    if config.get("ssl.endpoint.identification.algorithm") == "none":
        config["ssl.endpoint.identification.algorithm"] = ""
    if connection.tls_ca_file:
        config["ssl.truststore.type"] = "PEM"
        config["ssl.truststore.location"] = check_authority(connection.tls_ca_file, "tls_ca_file")
    if connection.tls_certificate_file:
        config["ssl.keystore.type"] = "PEM"
        config["ssl.keystore.certificate.chain"] = read_chain(connection.tls_certificate_file, "tls_certificate_file")
        config["ssl.keystore.key"] = _private_key(connection)
    if connection.sasl:
        config |= _java_login(connection.sasl, broker_servers(connection))
    return config


def _chosen(connection: ConnectionSpec, names: Mapping[str, str]) -> dict[str, str]:
    chosen = connection.client.chosen() if connection.client else {}
    return {names.get(name, name): value for name, value in chosen.items()}


def _consumer_names() -> frozenset[str]:
    return frozenset(_LIBRDKAFKA_NAMES.get(name, name) for name in _OF_CONSUMERS)


def _private_key(connection: ConnectionSpec) -> str:
    servers, encrypted = broker_servers(connection), connection.tls_key_password
    key = read_secret(SecretRef(file=connection.tls_key_file), "connection.tls_key_file", servers)
    password = read_secret(encrypted, "connection.tls_key_password", servers) if encrypted else None
    return read_key(key, password, connection.tls_certificate_file or "")


def _librdkafka_login(sasl: SaslSpec, brokers: tuple[str, ...]) -> dict[str, str]:
    config: dict[str, str] = {"sasl.mechanism": sasl.mechanism}
    if sasl.mechanism != "OAUTHBEARER":
        return {**config, "sasl.username": sasl.username or "", "sasl.password": _password(sasl, brokers)}
    config["sasl.oauthbearer.method"] = "oidc"
    config["sasl.oauthbearer.token.endpoint.url"] = sasl.token_url or ""
    config["sasl.oauthbearer.client.id"] = sasl.client_id or ""
    config["sasl.oauthbearer.client.secret"] = _client_secret(sasl)
    if sasl.scope:
        config["sasl.oauthbearer.scope"] = sasl.scope
    if sasl.extensions:
        config["sasl.oauthbearer.extensions"] = ",".join(f"{name}={value}" for name, value in sasl.extensions.items())
    if sasl.token_ca_file:
        config["https.ca.location"] = check_authority(sasl.token_ca_file, "sasl.token_ca_file")
    return config


def _java_login(sasl: SaslSpec, brokers: tuple[str, ...]) -> dict[str, str]:
    config: dict[str, str] = {"sasl.mechanism": sasl.mechanism}
    if sasl.mechanism != "OAUTHBEARER":
        login = {"username": sasl.username or "", "password": _password(sasl, brokers)}
    else:
        login = {"clientId": sasl.client_id or "", "clientSecret": _client_secret(sasl)}
        login |= {"scope": sasl.scope} if sasl.scope else {}
        login |= {f"extension_{name}": value for name, value in sasl.extensions.items()}
        if sasl.token_ca_file:
            authority = check_authority(sasl.token_ca_file, "sasl.token_ca_file")
            login |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": authority}
        config["sasl.login.callback.handler.class"] = _TOKEN_HANDLER
        config["sasl.oauthbearer.token.endpoint.url"] = sasl.token_url or ""
        # By default Java waits for a token server without an end.
        config["sasl.login.connect.timeout.ms"] = config["sasl.login.read.timeout.ms"] = _TOKEN_TIMEOUT_MS
    options = " ".join(f"{name}={jaas_quoted(value)}" for name, value in login.items())
    config["sasl.jaas.config"] = f"{_LOGIN_MODULES[sasl.mechanism]} required {options};"
    return config


def _password(sasl: SaslSpec, brokers: tuple[str, ...]) -> str:
    return read_secret(sasl.password or SecretRef(env=""), "connection.sasl.password", brokers)


def _client_secret(sasl: SaslSpec) -> str:
    return read_secret(sasl.client_secret or SecretRef(env=""), "connection.sasl.client_secret", token_servers(sasl))
