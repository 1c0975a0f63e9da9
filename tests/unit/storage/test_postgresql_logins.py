"""What a server that proves nothing gets of a password: a server of the test's own asks for it in each way that there is."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from pathlib import Path

import psycopg
import pytest
from tests.support.kafka.certificates import CertificateAuthority

from lakebound.spec.postgres import PostgresSpec
from lakebound.spec.warehouse import SqlCatalogSpec
from lakebound.storage.postgresql import login, refusal_in
from lakebound.tables.iceberg.postgresql import _engine

PASSWORD = "correct horse battery staple"
CLEARTEXT = struct.pack("!ii", 8, 3)
MD5 = struct.pack("!ii4s", 12, 5, b"salt")
NO_LOGIN = struct.pack("!ii", 8, 0)
_TLS_REQUEST = 80877103


class Impostor:
    """Takes the place of a PostgreSQL: it proves nothing, and asks for the password in the way that it wants.

    Attributes:
        got: What a client sent after it was asked.
    """

    def __init__(self, folder: Path, asks: bytes) -> None:
        signed = CertificateAuthority(folder).sign("impostor", hosts=("127.0.0.1",))
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(signed.certificate, signed.key)
        self._asks = asks
        self.got = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.settimeout(10)
            with contextlib.suppress(OSError), client:
                if struct.unpack("!ii", client.recv(8, socket.MSG_PEEK))[1] != _TLS_REQUEST:
                    self._ask(client)
                    continue
                client.recv(8)
                client.sendall(b"S")
                with self._tls.wrap_socket(client, server_side=True) as encrypted:
                    self._ask(encrypted)

    def _ask(self, client: socket.socket) -> None:
        client.recv(4096)
        client.sendall(b"R" + self._asks)
        self.got += client.recv(4096)


@pytest.mark.parametrize("asks", [CLEARTEXT, MD5, NO_LOGIN])
@pytest.mark.parametrize("sslmode", ["prefer", "require"])
def test_a_server_that_proved_nothing_gets_no_password(tmp_path: Path, sslmode: str, asks: bytes) -> None:
    server = Impostor(tmp_path, asks)
    body = {"host": "127.0.0.1", "port": server.port, "database": "lake", "username": "lake", "sslmode": sslmode}
    database = PostgresSpec.model_validate({**body, "password": {"env": "LAKEBOUND_SECRET_LAKE"}})
    with pytest.raises(psycopg.OperationalError, match="scram-sha-256") as error:
        psycopg.connect(**login(database, "reference.shop.postgres"), password=PASSWORD)
    server.close()
    assert refusal_in(error.value) == "login"
    assert not server.got.startswith(b"p"), "the message with a password or its MD5 sum"


def test_neither_does_one_in_the_place_of_a_catalogs_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Impostor(tmp_path, CLEARTEXT)
    monkeypatch.setenv("LAKEBOUND_SECRET_CATALOG", PASSWORD)
    uri = f"postgresql://127.0.0.1:{server.port}/iceberg?sslmode=require"
    spec = SqlCatalogSpec.model_validate(
        {"type": "sql", "uri": uri, "username": "lake", "password": {"env": "LAKEBOUND_SECRET_CATALOG"}}
    )
    with pytest.raises(Exception, match="scram-sha-256"):
        _engine(spec).connect()
    server.close()
    assert not server.got.startswith(b"p")
