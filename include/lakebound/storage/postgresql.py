"""How connections to a PostgreSQL notice that it is away, and what its refusals mean."""

from __future__ import annotations

import re
from typing import Any, Literal

from lakebound.first_line import first_line
from lakebound.spec.named_files import authority_path
from lakebound.spec.postgres import PostgresSpec

CONNECTION: dict[str, Any] = {
    "connect_timeout": 10,
    # A server that vanished is noticed after half a minute, not after the two hours of TCP.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    # A pooler such as pgbouncer gives each transaction another connection.
    "prepare_threshold": None,
}
"""Arguments of each connection."""

VERIFYING = ("verify-ca", "verify-full")
"""Modes of TLS in which the server proves who it is, before it gets a password."""
SCRAM_ALONE = "scram-sha-256"
"""A server that nothing proves would get the password itself, or its MD5 sum, by asking for it. With SCRAM it gets neither, and
must show that it knows the password, too."""
PROVED_BY_TLS = "password,scram-sha-256,md5,none"

Refusal = Literal["rights", "login", "database", "away"]

_LOGIN = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|role \".*\" does not exist|is not permitted to log in"
    r"|authentication method requirement",
    re.IGNORECASE,
)
_DATABASE = re.compile(r"database \".*\" does not exist|permission denied for database", re.IGNORECASE)


def login(database: PostgresSpec, field: str) -> dict[str, Any]:
    """Return how to connect to a database that a pipeline's YAML names, but for the password.

    Whoever writes YAML logs in by the password alone, and not as the machine's own user.

    Args:
        database: As it is written.
        field: Where the YAML says so, for messages.

    Raises:
        NamedFileError: The file of the authority cannot be used.
    """
    ca = {} if database.tls_ca_file is None else {"sslrootcert": authority_path(database.tls_ca_file, f"{field}.tls_ca_file")}
    return {
        **CONNECTION,
        "host": database.host,
        "port": database.port,
        "dbname": database.database,
        "user": database.username,
        "sslmode": database.sslmode,
        **ca,
        "sslcertmode": "disable",
        "gssencmode": "disable",
        "require_auth": PROVED_BY_TLS if database.sslmode in VERIFYING else SCRAM_ALONE,
        "client_encoding": "UTF8",
        "application_name": "lakebound",
    }


def refusal_in(error: BaseException) -> Refusal | None:
    """Return what an error of the driver says of the server or of the login; None where it is about the statement."""
    import psycopg

    reason, state = first_line(str(error)), getattr(error, "sqlstate", None) or ""
    if state == "42501":
        return "rights"
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return None
    if state.startswith("28") or _LOGIN.search(reason):
        return "login"
    if state.startswith("3D") or _DATABASE.search(reason):
        return "database"
    return "away"
