"""Files that YAML names: what is no regular file, has no end or lies elsewhere is neither read nor told of."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from tests.support.streams.pipeline_files import RIGHT, settings, write

from lakebound.errors import InvalidSpecError, MissingSecretError
from lakebound.landing.kafka_settings import client_config, java_config
from lakebound.settings import Settings, YamlAccess
from lakebound.spec.connection import ConnectionSpec, SecretRef
from lakebound.spec.load import load_file
from lakebound.spec.named_files import MOST_BYTES, UnusableFileError, read_bounded, read_certificates
from lakebound.spec.secrets import read_secret

__all__ = ["settings"]
PEM = "-----BEGIN CERTIFICATE-----\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of secrets, in which certificates may be, too."""
    made = tmp_path / "secrets"
    made.mkdir()
    monkeypatch.setenv("LAKEBOUND_SECRETS_FOLDER", str(made))
    return made


def connection(file: str, field: str) -> ConnectionSpec:
    body = {"bootstrap_servers": "127.0.0.1:9093", "tls": True}
    if field == "token_ca_file":
        secret = {"client_secret": {"env": "LAKEBOUND_SECRET_ONE"}, "token_url": "https://127.0.0.1/token"}
        return ConnectionSpec.model_validate(
            {**body, "sasl": {"mechanism": "OAUTHBEARER", "client_id": "lander", **secret, field: file}}
        )
    key = {"tls_key_file": "lander.key"} if field == "tls_certificate_file" else {}
    return ConnectionSpec.model_validate({**body, field: file, **key})


@pytest.mark.parametrize("engine", [client_config, java_config])
@pytest.mark.parametrize("field", ["tls_ca_file", "token_ca_file", "tls_certificate_file"])
def test_a_device_without_an_end_is_not_read(monkeypatch: pytest.MonkeyPatch, folder: Path, engine: object, field: str) -> None:
    monkeypatch.setenv("LAKEBOUND_CERTIFICATES", "/dev")  # even where somebody allows its folder
    monkeypatch.setenv("LAKEBOUND_SECRET_ONE", "one")
    with pytest.raises(MissingSecretError, match=rf"{field}: /dev/zero: is not a regular file"):
        assert callable(engine) and engine(connection("/dev/zero", field))


@pytest.mark.timeout(20)
def test_a_pipe_that_nobody_writes_to_stops_nobody(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    def read() -> None:
        with pytest.raises(UnusableFileError, match="is not a regular file"):
            read_bounded(folder / "pipe")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(10)
    assert not reader.is_alive()
    with pytest.raises(MissingSecretError):
        read_secret(SecretRef(file="pipe"), "connection.sasl.password", ("127.0.0.1:9092",))


def test_a_file_is_read_up_to_a_bound(folder: Path) -> None:
    (folder / "largest.pem").write_text(PEM.ljust(MOST_BYTES))
    (folder / "larger.pem").write_text(PEM.ljust(MOST_BYTES + 1))
    assert len(read_certificates("largest.pem")) == MOST_BYTES
    with pytest.raises(UnusableFileError, match="larger than 4 MiB"):
        read_certificates("larger.pem")
    with pytest.raises(UnusableFileError, match="is not a regular file"):
        read_bounded(folder)


def test_of_a_file_elsewhere_not_even_its_existence_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "there.pem").write_text(PEM)
    (folder / "link.pem").symlink_to(tmp_path / "there.pem")
    (folder / "circle.pem").symlink_to(folder / "circle.pem")
    names = [
        str(tmp_path / "there.pem"),
        str(tmp_path / "not.pem"),
        "../there.pem",
        "link.pem",
        "/root/x",
        "/dev/zero",
        "system",
    ]
    told = set()
    for name in names[:-1]:
        with pytest.raises(UnusableFileError) as error:
            read_certificates(name)
        told.add(str(error.value))
    assert len(told) == 1 and "not in a folder for certificates" in told.pop()
    for name in ("circle.pem", "gone.pem", "system"):
        with pytest.raises(UnusableFileError, match=r"No such file|symbolic link|Too many levels"):
            read_certificates(name)


def test_links_between_the_folders_of_authorities_are_followed(folder: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "ca.pem").write_text(PEM)
    (folder / "ca.pem").symlink_to(shared / "ca.pem")
    access = YamlAccess(secrets_folder=folder, certificates=(shared,))
    assert access.certificate_file("ca.pem") == access.certificate_file(str(shared / "ca.pem")) == shared / "ca.pem"
    assert YamlAccess(secrets_folder=folder, certificates=()).certificate_file("ca.pem") is None


POSTGRES = (
    "{host: db, database: shop, username: ada, password: {env: LAKEBOUND_SECRET_DB}, sslmode: verify-full, "
    "tls_ca_file: /etc/shadow}"
)
SASL = (
    "{mechanism: OAUTHBEARER, token_url: 'https://idp.example.com/token', client_id: a, "
    "client_secret: {env: LAKEBOUND_SECRET_KAFKA}, token_ca_file: /etc/shadow}"
)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (RIGHT.replace("value:", "  tls_ca_file: /etc/shadow\nvalue:"), "5: connection.tls_ca_file"),
        (
            RIGHT.replace("value:", "  tls: true\n  tls_certificate_file: /etc/shadow\n  tls_key_file: a.key\nvalue:"),
            "6: connection.tls_certificate_file",
        ),
        (RIGHT.replace("value:", f"  sasl: {SASL}\nvalue:"), "5: connection.sasl.token_ca_file"),
        (
            f"{RIGHT}transform: transforms.orders.clean\nreference:\n"
            f"  shop: {{format: postgres, name: a, key: [a], postgres: {POSTGRES}}}\n",
            "14: reference.shop.postgres.tls_ca_file",
        ),
        (f"{RIGHT}to_stores:\n  - {{name: a, key: a, postgres: {POSTGRES}}}\n", "13: to_stores[0].postgres.tls_ca_file"),
        (
            f"{RIGHT}to_stores:\n  - {{name: a, key: a, redis: {{host: db, tls: true, tls_ca_file: /etc/shadow}}}}\n",
            "13: to_stores[0].redis.tls_ca_file",
        ),
    ],
)
def test_check_names_the_line_of_each_file_elsewhere(settings: Settings, text: str, where: str) -> None:
    with pytest.raises(InvalidSpecError) as error:
        load_file(write(settings, text), settings)
    assert any(f"{where}: this file is not in a folder for certificates" in problem for problem in error.value.problems)
