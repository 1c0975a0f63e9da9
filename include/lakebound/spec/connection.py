"""How a pipeline reaches Kafka, as its author writes it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from lakebound.frozen import Frozen


class SecretRef(Frozen):
    """Where a secret is stored. The secret itself is never written here."""

    env: str | None = Field(
        default=None,
        description="Name of an environment variable: LAKEBOUND_SECRET_…, or one that the variable LAKEBOUND_SECRETS names.",
    )
    file: str | None = Field(
        default=None, description="A file in the folder LAKEBOUND_SECRETS_FOLDER (/run/secrets), by its path there or in full."
    )

    @model_validator(mode="after")
    def _one_place(self) -> SecretRef:
        if (self.env is None) == (self.file is None):
            raise ValueError("give either env or file")
        return self

    def __str__(self) -> str:
        return f"environment variable {self.env}" if self.env else f"file {self.file}"


class SaslSpec(Frozen):
    """How to log in to Kafka."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="PLAIN", description="SASL mechanism that the brokers expect."
    )
    username: str = Field(description="Kafka user as whom the pipeline reads.")
    password: SecretRef


class ConnectionSpec(Frozen):
    """The Kafka connection. ``${LAKEBOUND_…}``, such as ``${LAKEBOUND_KAFKA}``, is replaced by that environment variable."""

    bootstrap_servers: str = Field(min_length=1, description="Brokers to connect to first, as host:port,host:port.")
    tls: bool = Field(default=False, description="Whether the connection to the brokers is encrypted with TLS.")
    tls_ca_file: str | None = Field(default=None, description="PEM file of the CA that signed the broker's certificate.")
    sasl: SaslSpec | None = Field(default=None, description="How to log in to Kafka. Without it there is no login.")

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        return (self.sasl.password.env,) if self.sasl and self.sasl.password.env else ()

    @property
    def security_protocol(self) -> str:
        """Kafka's name for this combination of TLS and SASL."""
        return ("SASL_" if self.sasl else "") + ("SSL" if self.tls else "PLAINTEXT")
