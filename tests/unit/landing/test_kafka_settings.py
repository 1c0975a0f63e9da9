"""What the two engines' clients are told of one connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from tests.support.kafka.certificates import CertificateAuthority

from lakebound.errors import MissingSecretError, TlsFileError
from lakebound.landing.kafka_settings import client_config, consumer_config, java_config
from lakebound.spec.connection import ConnectionSpec


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CertificateAuthority:
    """An authority whose files are in the folder of secrets."""
    made = CertificateAuthority(tmp_path / "secrets")
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(made.file.parent))
    monkeypatch.setenv("LAKEBOUND_SECRET_ONE", 'one"\\')
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(tmp_path / "pipelines"))
    servers = "[kafka:9093, idp:443]"
    files = "".join(f"    {name}.key: {servers}\n" for name in ("ada", "locked", "no", "gone"))
    (tmp_path / "installation.yaml").write_text(
        f"secrets:\n  variables: {{LAKEBOUND_SECRET_ONE: {servers}, LAKEBOUND_SECRET_KEY: {servers}}}\n  files:\n{files}"
    )
    return made


def connection(**body: Any) -> ConnectionSpec:
    return ConnectionSpec.model_validate({"bootstrap_servers": "kafka:9093", **body})


def with_certificate(authority: CertificateAuthority, name: str, **more: Any) -> ConnectionSpec:
    files = {"tls_certificate_file": str(authority.file.parent / f"{name}.pem"), "tls_key_file": f"{name}.key"}
    return connection(tls=True, tls_ca_file=str(authority.file), **files, **more)


def test_scram_in_both_engines(authority: CertificateAuthority) -> None:
    sasl = {"mechanism": "SCRAM-SHA-256", "username": "ada", "password": {"env": "LAKEBOUND_SECRET_ONE"}}
    found = connection(tls=True, sasl=sasl)
    assert client_config(found) == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "ada",
        "sasl.password": 'one"\\',
    }
    assert java_config(found)["sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="ada" password="one\\"\\\\";'
    )


def test_tokens_in_both_engines(authority: CertificateAuthority) -> None:
    sasl = {
        "mechanism": "OAUTHBEARER",
        "token_url": "https://idp/token",
        "client_id": "ada",
        "client_secret": {"env": "LAKEBOUND_SECRET_ONE"},
        "scope": "kafka read",
        "extensions": {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"},
        "token_ca_file": str(authority.file),
    }
    found = connection(tls=True, sasl=sasl)
    config = client_config(found)
    assert config["sasl.oauthbearer.method"] == "oidc"
    assert config["sasl.oauthbearer.client.secret"] == 'one"\\'
    assert config["sasl.oauthbearer.extensions"] == "logicalCluster=lkc-1,identityPoolId=pool-2"
    assert config["https.ca.location"] == str(authority.file)
    java = java_config(found)
    assert java["sasl.oauthbearer.token.endpoint.url"] == "https://idp/token"
    assert java["sasl.login.callback.handler.class"].endswith(".OAuthBearerLoginCallbackHandler")
    assert java["sasl.jaas.config"] == (
        'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId="ada" clientSecret="one\\"\\\\" '
        'scope="kafka read" extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2" ssl.truststore.type="PEM" '
        f'ssl.truststore.location="{authority.file}";'
    )


@pytest.mark.parametrize(("password", "is_openssl"), [(None, False), (None, True), ("one", False)])
def test_a_private_key_of_any_format_reaches_both_engines(
    authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch, password: str | None, is_openssl: bool
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_KEY", password or "")
    signed = authority.sign("ada", password=password, is_openssl=is_openssl)
    more = {"tls_key_password": {"env": "LAKEBOUND_SECRET_KEY"}} if password else {}
    found = with_certificate(authority, "ada", **more)
    key = java_config(found)["ssl.keystore.key"]
    assert key.startswith("-----BEGIN PRIVATE KEY-----") and client_config(found)["ssl.key.pem"] == key
    known = serialization.load_pem_private_key(signed.key.read_bytes(), password.encode() if password else None)
    opened = serialization.load_pem_private_key(key.encode(), None)
    assert opened.public_key() == known.public_key()
    assert java_config(found)["ssl.keystore.certificate.chain"] == signed.certificate.read_text()


def test_what_is_wrong_with_a_file_is_told_with_its_field(authority: CertificateAuthority) -> None:
    authority.sign("ada")
    authority.sign("locked", password="one")
    (authority.file.parent / "no.pem").write_text("no certificate")
    (authority.file.parent / "no.key").write_text("no key")
    cases = {
        "connection.tls_ca_file: /nowhere: this file is not in a folder for": connection(tls=True, tls_ca_file="/nowhere"),
        "connection.tls_ca_file: gone.pem: No such file": connection(tls=True, tls_ca_file="gone.pem"),
        "connection.tls_ca_file: no.pem holds no certificate": connection(tls=True, tls_ca_file="no.pem"),
        "connection.tls_key_password: is missing: the private key in tls_key_file is encrypted": with_certificate(
            authority, "locked"
        ),
        "connection.tls_key_file: is not a private key in PEM": connection(
            tls=True, tls_certificate_file=str(authority.file), tls_key_file="no.key"
        ),
        "connection.tls_key_file: is not the private key of the first certificate in": connection(
            tls=True, tls_certificate_file=str(authority.file), tls_key_file="ada.key"
        ),
    }
    for sentence, wrong in cases.items():
        for engine in (client_config, java_config):
            with pytest.raises(TlsFileError) as caught:
                engine(wrong)
            assert str(caught.value).startswith(sentence)
    with pytest.raises(
        MissingSecretError, match=r"connection\.tls_key_file: file gone\.key in the folder .* is empty or missing"
    ):
        client_config(connection(tls=True, tls_certificate_file=str(authority.file), tls_key_file="gone.key"))


def test_settings_of_the_clients_have_each_engines_names() -> None:
    chosen = {
        "client.rack": "a",
        "fetch.max.wait.ms": 500,
        "request.timeout.ms": 20_000,
        "receive.buffer.bytes": 65_536,
        "socket.keepalive.enable": True,
        "ssl.endpoint.identification.algorithm": "none",
    }
    found = connection(client=chosen)
    plain = {"bootstrap.servers": "kafka:9093", "security.protocol": "PLAINTEXT"}
    assert client_config(found) == {
        **plain,
        "client.rack": "a",
        "socket.receive.buffer.bytes": "65536",
        "socket.timeout.ms": "20000",
        "socket.keepalive.enable": "true",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert consumer_config(found) == {**client_config(found), "fetch.wait.max.ms": "500"}
    assert java_config(found) == {
        **plain,
        "client.rack": "a",
        "fetch.max.wait.ms": "500",
        "receive.buffer.bytes": "65536",
        "request.timeout.ms": "20000",
        "ssl.endpoint.identification.algorithm": "",
    }
