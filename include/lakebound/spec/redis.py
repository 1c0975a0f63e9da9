"""How a Redis or Valkey server is reached, as the author of a pipeline writes it."""

from __future__ import annotations

import re

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.connection import SecretRef

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?|::1")


class RedisSpec(Frozen):
    """A Redis or Valkey server, and the user who writes to it."""

    host: str = Field(description="Name or address of the server.")
    port: int = Field(default=6379, ge=1, le=65_535, description="Port of the server.")
    database: int = Field(default=0, ge=0, le=65_535, description="Number of the database.")
    username: str | None = Field(
        default=None, min_length=1, description="User of the server. Default: the server's default user."
    )
    password: SecretRef | None = Field(default=None, description="Password of the user. Default: no password is sent.")
    tls: bool = Field(default=False, description="Whether the connection uses TLS. The server's certificate is then checked.")
    tls_ca_file: str | None = Field(
        default=None,
        min_length=1,
        description="PEM file of the CA that signed the server's certificate. Default: the system's CAs.",
    )

    @field_validator("host")
    @classmethod
    def _is_a_host(cls, host: str) -> str:
        if not _HOST.fullmatch(host):
            # Not repeated: it may be an address with the password in it.
            raise ValueError(
                "must be a host's name or address, such as cache.example.com; port, database and login have their own keys"
            )
        return host

    @model_validator(mode="after")
    def _whole_login(self) -> RedisSpec:
        if self.username is not None and self.password is None:
            raise ValueError("password is missing: a user logs in with one")
        if self.tls_ca_file is not None and not self.tls:
            raise ValueError("tls_ca_file needs tls: true")
        return self
