"""Where tables lie, as whoever runs Lakebound writes it in warehouses.yaml: a folder or a bucket, and an Iceberg catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.settings import embedded_catalog_uri
from lakebound.spec.connection import SecretRef

DEFAULT_WAREHOUSE = "default"
"""The warehouse of a pipeline that names none."""

POSTGRESQL = ("postgresql", "postgresql+psycopg")
"""How the address of a PostgreSQL database begins."""

SCHEMES = ("s3", "gs", "az")
"""Of the object stores that tables may lie in; S3 is tried, the others are by the same calls."""


class PricesSpec(Frozen):
    """What a store charges for requests.

    The defaults are list prices of S3 Standard in us-east-1, as remembered in November 2026: no price list was looked up.
    """

    dollars_per_1000_writes: float = Field(default=0.005, ge=0, description="Price of 1000 PUT, POST or LIST requests.")
    dollars_per_1000_reads: float = Field(default=0.0004, ge=0, description="Price of 1000 GET or HEAD requests.")


class StoreSpec(Frozen):
    """How an object store is reached. Without keys, the machine's own credentials are used: its variables, or its role."""

    endpoint: str | None = Field(
        default=None, description="Address of a store other than the cloud's own, such as http://host:9000."
    )
    region: str | None = Field(default=None, description="Region of the bucket.")
    access_key_id: SecretRef | None = Field(default=None, description="Access key.")
    secret_access_key: SecretRef | None = Field(default=None, description="Secret key of the access key.")
    session_token: SecretRef | None = Field(default=None, description="Token of temporary keys.")
    prices: PricesSpec | None = Field(
        default=None, description="Prices of requests to the store. Default: list prices of S3; with an endpoint, no prices."
    )

    @field_validator("endpoint")
    @classmethod
    def _endpoint(cls, endpoint: str | None) -> str | None:
        if endpoint is not None and urlsplit(endpoint).scheme not in ("http", "https"):
            raise ValueError(f"{endpoint!r} is not an address such as https://host:9000")
        return endpoint

    @model_validator(mode="after")
    def _both_keys(self) -> StoreSpec:
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("give both access_key_id and secret_access_key, or neither")
        if self.session_token is not None and self.access_key_id is None:
            raise ValueError("session_token goes with access_key_id and secret_access_key")
        return self

    @property
    def secrets(self) -> dict[str, SecretRef]:
        """Its secrets, by the name of their field."""
        named = {name: getattr(self, name) for name in ("access_key_id", "secret_access_key", "session_token")}
        return {name: ref for name, ref in named.items() if ref is not None}


class SqlCatalogSpec(Frozen):
    """An Iceberg catalog in a SQL database."""

    type: Literal["sql"]
    uri: str = Field(description="SQLAlchemy address without a password, such as postgresql://host:5432/iceberg.")
    username: str | None = Field(default=None, description="User of the database.")
    password: SecretRef | None = Field(default=None, description="Password of the user.")

    @field_validator("uri")
    @classmethod
    def _uri(cls, uri: str) -> str:
        parts = urlsplit(uri)
        if parts.scheme not in (*POSTGRESQL, "sqlite"):
            raise ValueError(f"{parts.scheme or uri!r} is not a database for a catalog; write postgresql://HOST:PORT/DATABASE")
        if parts.scheme in POSTGRESQL and ("@" in parts.netloc or "password" in parts.query):
            raise ValueError("the address must not contain user and password; give them as username and password")
        return uri

    @property
    def is_sqlite(self) -> bool:
        """Whether it is a file of this machine."""
        return self.uri.startswith("sqlite")

    @property
    def secrets(self) -> dict[str, SecretRef]:
        """Its secrets, by the name of their field."""
        return {"password": self.password} if self.password else {}


class OAuth2Spec(Frozen):
    """How a token is got from an OAuth2 server, by client credentials."""

    server_uri: str = Field(description="Address of the server's token endpoint.")
    client_id: str = Field(description="Id of the client.")
    client_secret: SecretRef
    scope: str | None = Field(default=None, description="Scope that is asked for.")


class RestCatalogSpec(Frozen):
    """An Iceberg REST catalog."""

    type: Literal["rest"]
    uri: str = Field(description="Address of the catalog.")
    warehouse: str | None = Field(default=None, description="Name of the warehouse in the catalog, where it has several.")
    prefix: str | None = Field(default=None, description="Prefix of the catalog's paths, where it has one.")
    token: SecretRef | None = Field(default=None, description="Bearer token.")
    oauth2: OAuth2Spec | None = Field(default=None, description="How to get a token.")

    @model_validator(mode="after")
    def _one_login(self) -> RestCatalogSpec:
        if self.token is not None and self.oauth2 is not None:
            raise ValueError("give either token or oauth2")
        return self

    @property
    def secrets(self) -> dict[str, SecretRef]:
        """Its secrets, by the name of their field."""
        if self.oauth2 is not None:
            return {"oauth2.client_secret": self.oauth2.client_secret}
        return {"token": self.token} if self.token else {}


class GlueCatalogSpec(Frozen):
    """The AWS Glue catalog. It has not been tried: the machines where Lakebound is tested have none."""

    type: Literal["glue"]
    region: str = Field(description="Region of the catalog.")

    @property
    def secrets(self) -> dict[str, SecretRef]:
        """None: it takes the machine's own credentials."""
        return {}


MACHINES_OWN = tuple(
    f"AWS_{name}"
    for name in (
        "ACCESS_KEY_ID",
        "SECRET_ACCESS_KEY",
        "SESSION_TOKEN",
        "REGION",
        "DEFAULT_REGION",
        "PROFILE",
        "CONFIG_FILE",
        "SHARED_CREDENTIALS_FILE",
        "WEB_IDENTITY_TOKEN_FILE",
        "ROLE_ARN",
        "ROLE_SESSION_NAME",
        "CONTAINER_CREDENTIALS_RELATIVE_URI",
        "CONTAINER_CREDENTIALS_FULL_URI",
        "CONTAINER_AUTHORIZATION_TOKEN_FILE",
    )
)
"""Variables by which AWS's clients find the credentials of the machine or the container that they run in."""

CatalogSpec = Annotated[SqlCatalogSpec | RestCatalogSpec | GlueCatalogSpec, Field(discriminator="type")]


class WarehouseSpec(Frozen):
    """Where tables lie, and the catalog of those in Iceberg's format."""

    location: str = Field(description="Absolute path of a folder, or s3://BUCKET/PREFIX.")
    store: StoreSpec | None = Field(default=None, description="How the object store is reached.")
    catalog: CatalogSpec | None = Field(
        default=None,
        description="The Iceberg catalog. Default for a folder: a SQLite file in that folder. An object store has no default.",
    )

    @field_validator("location")
    @classmethod
    def _location(cls, location: str) -> str:
        parts = urlsplit(location)
        if location.startswith("/"):
            return location.rstrip("/") or "/"
        if parts.scheme not in SCHEMES or not parts.netloc:
            raise ValueError(f"{location!r} is neither an absolute path nor an address such as s3://bucket/prefix")
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError(f"{location!r} has more than a bucket and a prefix")
        return location.rstrip("/")

    @model_validator(mode="after")
    def _goes_together(self) -> WarehouseSpec:
        if self.is_local and self.store is not None:
            raise ValueError(
                "store: only for an object store, but location is a folder; give a location such as s3://bucket/prefix"
            )
        if not self.is_local and self.catalog is not None and _sqlite(self.catalog):
            raise ValueError("catalog: SQLite does not go with an object store; use a REST catalog or PostgreSQL")
        return self

    @property
    def secrets(self) -> dict[str, SecretRef]:
        """Its secrets, by the name of their field."""
        found = {f"store.{name}": ref for name, ref in (self.store.secrets if self.store else {}).items()}
        if self.catalog is not None:
            found |= {f"catalog.{name}": ref for name, ref in self.catalog.secrets.items()}
        return found

    @property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        return tuple(ref.env for ref in self.secrets.values() if ref.env is not None)

    @property
    def own_variables(self) -> tuple[str, ...]:
        """The variables by which its clients find the machine's own credentials; none where the file names the keys."""
        has_keys = self.store is not None and self.store.access_key_id is not None
        uses_aws = not self.is_local or isinstance(self.catalog, GlueCatalogSpec)
        return MACHINES_OWN if uses_aws and not has_keys else ()

    @property
    def is_local(self) -> bool:
        """Whether the tables lie in a folder of this machine."""
        return self.location.startswith("/")


def local_warehouse(folder: Path) -> WarehouseSpec:
    """Return the embedded warehouse: a folder of this machine with a SQLite catalog in it."""
    catalog = SqlCatalogSpec(type="sql", uri=embedded_catalog_uri(folder))
    return WarehouseSpec(location=str(folder), catalog=catalog)


def _sqlite(catalog: SqlCatalogSpec | RestCatalogSpec | GlueCatalogSpec) -> bool:
    return isinstance(catalog, SqlCatalogSpec) and catalog.is_sqlite
