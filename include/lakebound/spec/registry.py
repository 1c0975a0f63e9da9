"""How a schema registry is reached, as whoever runs Lakebound writes it in registries.yaml."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.connection import SecretRef

_TLS = ("tls_ca_file", "tls_certificate_file", "tls_key_file", "tls_key_password")


class RegistrySpec(Frozen):
    """A schema registry with Confluent's API. Without a login, it is asked without one."""

    url: str = Field(
        description="Address of the API, such as https://registry.example.com:8081. Of Apicurio Registry it ends with "
        "/apis/ccompat/v7."
    )
    username: str | None = Field(default=None, min_length=1, description="User of the registry (basic authentication).")
    password: SecretRef | None = Field(default=None, description="Password of the user.")
    token: SecretRef | None = Field(default=None, description="Bearer token, in place of user and password.")
    tls_ca_file: str | None = Field(
        default=None,
        description="PEM file of the CA that signed the registry's certificate (absolute path). Default: the system's CAs.",
    )
    tls_certificate_file: str | None = Field(
        default=None,
        description="PEM file with the client's certificate, followed by its intermediate CAs, as an absolute path. For "
        "registries that require a client certificate (mTLS).",
    )
    tls_key_file: str | None = Field(
        default=None,
        description="PEM file with the private key of that certificate. It must be in the folder LAKEBOUND_SECRETS_FOLDER "
        "(default: /run/secrets). Give its path relative to that folder, or absolute.",
    )
    tls_key_password: SecretRef | None = Field(default=None, description="The password of the private key, if it is encrypted.")
    request_timeout_seconds: float = Field(
        default=10.0, ge=0.1, le=300, description="How long one request may take before the registry counts as away."
    )

    @field_validator("url")
    @classmethod
    def _url(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            # A port that is none raises ValueError when it is asked for.
            is_right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_right = False
        if url.count("://") > 1 or "," in url.partition("://")[2].partition("/")[0]:
            raise ValueError("give one address only; where the registry has several, that of what balances their load")
        if not is_right or re.search(r"[^\x21-\x7e]|[\"\\]", url):
            raise ValueError("must be an address such as https://registry.example.com:8081")
        if "@" in parts.netloc:
            raise ValueError("the address must not contain user and password; give them as username and password")
        if parts.query or parts.fragment:
            raise ValueError("the address must not contain ? or #")
        return url.rstrip("/")

    @field_validator("tls_ca_file", "tls_certificate_file")
    @classmethod
    def _absolute(cls, file: str | None) -> str | None:
        if file is not None and not os.path.isabs(file):
            raise ValueError("must be an absolute path")
        return file

    @model_validator(mode="after")
    def _goes_together(self) -> RegistrySpec:
        if (self.username is None) != (self.password is None):
            raise ValueError("give both username and password, or neither")
        if self.username is not None and self.token is not None:
            raise ValueError("give either username and password, or token")
        if (self.tls_certificate_file is None) != (self.tls_key_file is None):
            raise ValueError("give both tls_certificate_file and tls_key_file, or neither")
        if self.tls_key_password is not None and self.tls_key_file is None:
            raise ValueError("tls_key_password goes with tls_certificate_file and tls_key_file")
        if not self.url.startswith("https:") and (given := [name for name in _TLS if getattr(self, name) is not None]):
            raise ValueError(f"{' and '.join(given)}: only for an address that begins with https://")
        return self

    @property
    def secrets(self) -> dict[str, SecretRef]:
        """Its secrets, by the name of their field. A private key is one of them."""
        found = {
            "password": self.password,
            "token": self.token,
            "tls_key_file": SecretRef(file=self.tls_key_file) if self.tls_key_file else None,
            "tls_key_password": self.tls_key_password,
        }
        return {name: ref for name, ref in found.items() if ref is not None}

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        return tuple(ref.env for ref in self.secrets.values() if ref.env is not None)

    @property
    def login_fields(self) -> str:
        """The fields of its login, for messages."""
        return "token" if self.token is not None else "username and password"
