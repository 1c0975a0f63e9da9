"""A registry over TLS: its certificate is checked, a client's is shown, and a file that is wrong is named."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.support.kafka.certificates import CertificateAuthority, Signed
from tests.support.registry.said_answers import Said, answering

from lakebound.errors import LakeboundError, MissingSecretError, NamedFileError, RegistryLoginError
from lakebound.registry.client import RegistryClient
from lakebound.spec.registry import RegistrySpec

SCHEMA = Said(b'{"schema": "x"}')


@pytest.fixture
def authority(tmp_path: Path) -> CertificateAuthority:
    return CertificateAuthority(tmp_path / "ca")


@pytest.fixture(autouse=True)
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(folder))
    return folder


def server_context(certificate: Signed, clients: CertificateAuthority | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.certificate, certificate.key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients.file)
    return context


def ask(url: str, **more: Any) -> object:
    spec = RegistrySpec.model_validate({"url": url, "request_timeout_seconds": 5, **more})
    return RegistryClient("company", spec).schema(1)


def test_its_certificate_must_be_signed_by_the_authority_and_name_its_host(authority: CertificateAuthority) -> None:
    right, other = authority.sign("registry", hosts=("127.0.0.1",)), authority.sign("other", hosts=("example.com",))
    with answering(lambda path: SCHEMA, server_context(right)) as server:
        assert ask(server.url, tls_ca_file=str(authority.file)) is not None
        with pytest.raises(RegistryLoginError, match=r"its certificate is not accepted.*; check tls_ca_file and url"):
            ask(server.url)
    with answering(lambda path: SCHEMA, server_context(other)) as server, pytest.raises(RegistryLoginError):
        ask(server.url, tls_ca_file=str(authority.file))


def test_a_client_shows_its_certificate(
    authority: CertificateAuthority, secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_side, client = authority.sign("registry", hosts=("127.0.0.1",)), authority.sign("lakebound", password="hunter2")
    monkeypatch.setenv("LAKEBOUND_SECRET_KEY", "hunter2")
    (secrets / "registries").mkdir()
    (secrets / "registries" / "company.key").write_bytes(client.key.read_bytes())
    trust = {"tls_ca_file": str(authority.file)}
    shown = {"tls_certificate_file": str(client.certificate), "tls_key_file": "company.key"}
    password = {"tls_key_password": {"env": "LAKEBOUND_SECRET_KEY"}}
    with answering(lambda path: SCHEMA, server_context(server_side, authority)) as server:
        assert ask(server.url, **trust, **shown, **password) is not None
        with pytest.raises(LakeboundError) as caught:
            ask(server.url, **trust)
        assert "tls_certificate_file" in str(caught.value) or caught.value.passes
        with pytest.raises(NamedFileError, match="its password is wrong or missing"):
            ask(server.url, **trust, **shown)
        monkeypatch.setenv("LAKEBOUND_SECRET_KEY", "wrong")
        with pytest.raises(NamedFileError, match=r"registries\.company\.tls_key_file") as refused:
            ask(server.url, **trust, **shown, **password)
        assert "wrong" not in str(refused.value).replace("is wrong or missing", "")


@pytest.mark.parametrize(
    "content", [b"", b"no certificate", b"\xff" * 100, b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_file_without_a_certificate_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ca.pem"
    file.write_bytes(content)
    with pytest.raises(NamedFileError, match=r"registries\.company\.tls_ca_file: .*ca\.pem"):
        ask("https://127.0.0.1:1", tls_ca_file=str(file))


def test_a_file_that_is_none_is_named(tmp_path: Path, authority: CertificateAuthority) -> None:
    for file in (tmp_path, tmp_path / "missing.pem", Path("/dev/zero")):
        with pytest.raises(NamedFileError, match="tls_ca_file"):
            ask("https://127.0.0.1:1", tls_ca_file=str(file))
    client = authority.sign("lakebound")
    for key in ("missing.key", "../ca/ca.pem", str(client.key)):
        with pytest.raises(MissingSecretError, match="tls_key_file"):
            ask("https://127.0.0.1:1", tls_certificate_file=str(client.certificate), tls_key_file=key)
