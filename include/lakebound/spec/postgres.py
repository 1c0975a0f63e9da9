"""How a PostgreSQL database of reference data is reached, as the author of a pipeline writes it."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.connection import SecretRef

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?|::1")
SslMode = Literal["prefer", "require", "verify-ca", "verify-full"]


class PostgresSpec(Frozen):
    """A PostgreSQL database and its user. For reference data, the user needs only SELECT; for a store, the user writes."""

    host: str = Field(
        description="Name or address of the server. A Unix socket is not allowed: it would log in as the machine's user."
    )
    port: int = Field(default=5432, ge=1, le=65_535, description="Port of the server.")
    database: str = Field(min_length=1, max_length=63, description="Name of the database.")
    username: str = Field(min_length=1, max_length=63, description="User of the database.")
    password: SecretRef = Field(description="Password of the user.")
    sslmode: SslMode = Field(
        default="prefer",
        description="How the connection is encrypted, in PostgreSQL's terms. verify-full (recommended): with TLS, and the "
        "server's certificate and name are checked. verify-ca: its certificate only. require: TLS without a check. prefer: TLS "
        "if the server has it. With require and prefer, the login is by SCRAM-SHA-256 only, so no server gets the password.",
    )
    tls_ca_file: str | None = Field(
        default=None,
        min_length=1,
        description="PEM file of the CA that signed the server's certificate, for verify-ca and verify-full. It is in the "
        "folder of secrets, in /etc/lakebound or in a folder of LAKEBOUND_CERTIFICATES.",
    )

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, host: str) -> str:
        if not _HOST.fullmatch(host):
            # Not repeated: it may be an address with the password in it.
            raise ValueError(
                "must be a host's name or address, such as db.example.com; port, database and login have their own keys"
            )
        return host

    @field_validator("database", "username")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        # libpq takes a database's name with = or :// for a whole connection string.
        if re.search(r"[=\0]|://", name):
            raise ValueError("must be only a name, without an address or options")
        return name

    @model_validator(mode="after")
    def _has_its_ca(self) -> PostgresSpec:
        verifies = self.sslmode.startswith("verify")
        if verifies and self.tls_ca_file is None:
            raise ValueError(f"tls_ca_file is missing: sslmode {self.sslmode} compares the server's certificate with it")
        if not verifies and self.tls_ca_file is not None:
            raise ValueError(f"tls_ca_file is for sslmode verify-ca and verify-full, not for {self.sslmode}")
        return self
