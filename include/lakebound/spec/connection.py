"""How a pipeline reaches Kafka, as its author writes it."""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.client_settings import ClientSettings

_NO_IAM = (
    "is not supported: AWS_MSK_IAM needs Amazon's own code in every client; log in to MSK with SCRAM-SHA-512 (mechanism, "
    "username, password) or with a client certificate (tls_certificate_file, tls_key_file)"
)
_NO_KERBEROS = (
    "is not supported: GSSAPI (Kerberos) needs tickets on every machine, and libraries that the clients do not include; log "
    "in with SCRAM-SHA-512, OAUTHBEARER or a client certificate (tls_certificate_file, tls_key_file)"
)
_REFUSED_MECHANISMS = {
    "AWS_MSK_IAM": _NO_IAM,
    "MSK_IAM": _NO_IAM,
    "IAM": _NO_IAM,
    "GSSAPI": _NO_KERBEROS,
    "KERBEROS": _NO_KERBEROS,
}
_OF_PASSWORDS = ("username", "password")
_OF_TOKENS = ("token_url", "client_id", "client_secret", "scope", "token_ca_file", "extensions")
_NEEDED_FOR_TOKENS = ("token_url", "client_id", "client_secret")


class SecretRef(Frozen):
    """Where a secret is stored. The secret itself is never written here."""

    env: str | None = Field(
        default=None,
        description="Name of an environment variable. It begins with LAKEBOUND_SECRET_, or LAKEBOUND_SECRETS lists it.",
    )
    file: str | None = Field(
        default=None,
        description="Path of a file in the folder LAKEBOUND_SECRETS_FOLDER (default: /run/secrets): relative to that folder, "
        "or absolute.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> SecretRef:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env or file")
        return self

    def __str__(self) -> str:
        return f"environment variable {self.env}" if self.env else f"file {self.file}"


class SaslSpec(Frozen):
    """How to log in to Kafka: with a password, or with a token from a token server (OAUTHBEARER)."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"] = Field(
        default="PLAIN", description="SASL mechanism that the brokers expect."
    )
    username: str | None = Field(default=None, description="Kafka user of the pipeline. Required for PLAIN and SCRAM.")
    password: SecretRef | None = Field(default=None, description="The user's password. Required for PLAIN and SCRAM.")
    token_url: str | None = Field(
        default=None,
        description="OAUTHBEARER: address of the token server's token endpoint, such as https://idp.example.com/token.",
    )
    client_id: str | None = Field(default=None, min_length=1, description="OAUTHBEARER: the client that asks for tokens.")
    client_secret: SecretRef | None = Field(default=None, description="OAUTHBEARER: the client's secret.")
    scope: str | None = Field(
        default=None, min_length=1, description="OAUTHBEARER: scope to request, if the token server requires one."
    )
    token_ca_file: str | None = Field(
        default=None,
        description="OAUTHBEARER: PEM file of the CA that signed the token server's certificate. Default: the system's CAs.",
    )
    extensions: dict[str, str] = Field(
        default_factory=dict, description="OAUTHBEARER: SASL extensions by name, such as logicalCluster: lkc-1234."
    )

    @field_validator("mechanism", mode="before")
    @classmethod
    def _known_to_fail(cls, mechanism: Any) -> Any:
        refused = _REFUSED_MECHANISMS.get(mechanism.upper()) if isinstance(mechanism, str) else None
        if refused is not None:
            raise ValueError(refused)
        return mechanism

    @field_validator("token_url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            # A port that is none raises ValueError when it is asked for.
            is_right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
        except ValueError:
            is_right = False
        if not is_right or re.search(r"[\s\",\\]", url):
            raise ValueError("must be an address such as https://idp.example.com/token, without user and password")
        return url

    @field_validator("extensions")
    @classmethod
    def _plain_extensions(cls, extensions: dict[str, str]) -> dict[str, str]:
        for name, value in extensions.items():
            if not re.fullmatch("[A-Za-z]+", name) or name == "auth" or not re.fullmatch(r"[\x21-\x2b\x2d-\x7e]+", value):
                raise ValueError(
                    "a name must consist of letters, and not be auth; a value must be printable, without blanks and commas"
                )
        return extensions

    @model_validator(mode="after")
    def _fits_the_mechanism(self) -> SaslSpec:
        by_token = self.mechanism == "OAUTHBEARER"
        needed, others = (_NEEDED_FOR_TOKENS, _OF_PASSWORDS) if by_token else (_OF_PASSWORDS, _OF_TOKENS)
        missing = [name for name in needed if not getattr(self, name)]
        if missing:
            raise ValueError(
                f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing: {self.mechanism} needs "
                f"{', '.join(needed)}"
            )
        if unused := [name for name in others if getattr(self, name)]:
            raise ValueError(f"{', '.join(unused)}: not for the mechanism {self.mechanism}, which takes {', '.join(needed)}")
        return self


class ConnectionSpec(Frozen):
    """The Kafka connection. ``${LAKEBOUND_…}``, such as ``${LAKEBOUND_KAFKA}``, is replaced by that environment variable."""

    bootstrap_servers: str = Field(min_length=1, description="Brokers to connect to first, as host:port,host:port.")
    tls: bool = Field(default=False, description="Whether the connection to the brokers is encrypted with TLS.")
    tls_ca_file: str | None = Field(default=None, description="PEM file of the CA that signed the broker's certificate.")
    tls_certificate_file: str | None = Field(
        default=None,
        description="PEM file with the client's certificate, followed by its intermediate CAs. For brokers that require a "
        "client certificate (mTLS).",
    )
    tls_key_file: str | None = Field(
        default=None,
        description="PEM file with the private key of that certificate. It must be in the folder LAKEBOUND_SECRETS_FOLDER "
        "(default: /run/secrets). Give its path relative to that folder, or absolute.",
    )
    tls_key_password: SecretRef | None = Field(default=None, description="The password of the private key, if it is encrypted.")
    sasl: SaslSpec | None = Field(default=None, description="How to log in to Kafka. Without it there is no login.")
    client: ClientSettings | None = Field(
        default=None, description="Settings of the Kafka clients, by Kafka's own names, such as request.timeout.ms."
    )

    @field_validator("bootstrap_servers")
    @classmethod
    def _names_a_server(cls, servers: str) -> str:
        if not servers.strip(" ,"):
            raise ValueError("must name a broker, such as kafka-1.example.com:9092")
        return servers

    @model_validator(mode="after")
    def _whole_identity(self) -> ConnectionSpec:
        files = {"tls_certificate_file": self.tls_certificate_file, "tls_key_file": self.tls_key_file}
        given = [name for name, file in files.items() if file]
        if len(given) == 1:
            other = next(name for name in files if name not in given)
            raise ValueError(f"{given[0]} needs {other}, too")
        if self.tls_key_password and not given:
            raise ValueError("tls_key_password needs tls_certificate_file and tls_key_file")
        if given and not self.tls:
            raise ValueError(f"{' and '.join(given)} need tls: true")
        return self

    @property
    def secrets(self) -> dict[tuple[str, ...], SecretRef]:
        """Where its secrets are, by their keys in the YAML. A private key is one of them."""
        sasl = self.sasl
        found = {
            ("tls_key_file",): SecretRef(file=self.tls_key_file) if self.tls_key_file else None,
            ("tls_key_password",): self.tls_key_password,
            ("sasl", "password"): sasl.password if sasl else None,
            ("sasl", "client_secret"): sasl.client_secret if sasl else None,
        }
        return {("connection", *keys): ref for keys, ref in found.items() if ref is not None}

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        return tuple(ref.env for ref in self.secrets.values() if ref.env)

    @property
    def security_protocol(self) -> str:
        """Kafka's name for this combination of TLS and SASL."""
        return ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")
