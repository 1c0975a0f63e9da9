"""Reference data of a pipeline, as its author writes it: small tables that change, which the transform joins records with."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.connection import SecretRef
from lakebound.spec.ddl import ddl_mistakes
from lakebound.spec.postgres import PostgresSpec

ON_CHANGE = "on_change"
ON_CHANGE_SECONDS = 10.0
"""How often a reference is looked at that has no interval of its own."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}(\.[a-z][a-z0-9_]{0,62})?")
_INTERVAL = re.compile(r"([0-9]{1,5}) ?(s|m|h|d)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


class ReferenceSpec(Frozen):
    """One table of reference data."""

    format: Literal["delta", "iceberg", "parquet", "csv", "postgres"] = Field(
        description="Format in which the table is stored."
    )
    name: str | None = Field(
        default=None,
        description="For Delta and Iceberg: a table in the pipeline's warehouse, as namespace.table or a table name only. For "
        "PostgreSQL: a table or view, as schema.table or its name only.",
    )
    path: str | None = Field(
        default=None,
        description="For Parquet and CSV: a file or folder. For Delta: the folder of a table. It is in LAKEBOUND_REFERENCES.",
    )
    csv_schema: str | None = Field(
        default=None,
        alias="schema",
        description="For CSV: the columns as Spark DDL, without nested types. Default: the types are inferred from the values.",
    )
    postgres: PostgresSpec | None = Field(default=None, description="For PostgreSQL: the database and the login.")
    query: str | None = Field(
        default=None,
        description="For PostgreSQL, instead of 'name': one SELECT. It runs in a read-only transaction.",
    )
    columns: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="For a table in PostgreSQL: the columns to read. Default: all columns."
    )
    key: tuple[str, ...] = Field(
        min_length=1, description="Columns that identify a row. The key must be unique, and no key column may be null."
    )
    refresh: str = Field(
        default=ON_CHANGE,
        description="How often the stream checks for a newer version: an interval such as 30s, 5m or 1h; or on_change, which "
        "checks every 10 s.",
    )

    @field_validator("name")
    @classmethod
    def _table_name(cls, name: str | None) -> str | None:
        if name is not None and not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a table name: one or two of [a-z][a-z0-9_]*, joined by a dot")
        return name

    @field_validator("csv_schema")
    @classmethod
    def _types(cls, schema: str | None) -> str | None:
        if schema is not None and (mistakes := ddl_mistakes(schema)):
            raise ValueError("; ".join(mistakes))
        return schema

    @field_validator("key", "columns")
    @classmethod
    def _columns(cls, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if columns is not None and (len(set(columns)) != len(columns) or not all(columns)):
            raise ValueError("a column is empty, or named twice")
        return columns

    @field_validator("query")
    @classmethod
    def _one_query(cls, query: str | None) -> str | None:
        if query is not None and (not query.strip() or query.rstrip().endswith(";")):
            raise ValueError("must be one SELECT, without a semicolon at its end")
        return query

    @field_validator("refresh")
    @classmethod
    def _refresh(cls, refresh: str) -> str:
        parse_refresh(refresh)
        return refresh

    @model_validator(mode="after")
    def _of_postgres(self) -> ReferenceSpec:
        if self.format != "postgres":
            if given := [key for key in ("postgres", "query", "columns") if getattr(self, key) is not None]:
                raise ValueError(f"{' and '.join(given)}: only for format postgres")
            return self
        if self.postgres is None:
            raise ValueError("'postgres' is missing: host, database, username and password of the database")
        if self.path is not None or (self.name is None) == (self.query is None):
            raise ValueError("give either 'name' or 'query', to say what to read from PostgreSQL")
        if self.columns is not None and self.query is not None:
            raise ValueError("'columns' is for a table; the query says its columns itself")
        if self.columns is not None and (absent := [column for column in self.key if column not in self.columns]):
            raise ValueError(f"'columns' must contain all columns of the key; missing: {', '.join(absent)}")
        return self

    @model_validator(mode="after")
    def _one_place(self) -> ReferenceSpec:
        if self.format == "iceberg" and self.path is not None:
            raise ValueError("an Iceberg table is named by 'name'; 'path' is for Delta, Parquet and CSV")
        if self.format in ("parquet", "csv") and self.name is not None:
            raise ValueError(f"'name' is for Delta and Iceberg tables; give the place of the {self.format} files as 'path'")
        if self.format != "postgres" and (self.name is None) == (self.path is None):
            raise ValueError(
                "give either 'name' or 'path', to say where it is" if self.format == "delta" else f"{self._place} is missing"
            )
        if self.csv_schema is not None and self.format != "csv":
            raise ValueError("'schema' is for CSV; the other formats know the types of their columns")
        return self

    @property
    def _place(self) -> str:
        return "'name'" if self.format == "iceberg" else "'path'"

    @property
    def refresh_seconds(self) -> float:
        """How often the stream looks whether there is a newer version."""
        return parse_refresh(self.refresh)

    @property
    def told(self) -> str:
        """What and where it is, for messages: ``delta crm.customers``."""
        return f"{self.format} {self.name or self.path or 'query'}"

    @property
    def secrets(self) -> dict[tuple[str, ...], SecretRef]:
        """Where its secrets are, by their keys in the YAML."""
        return {} if self.postgres is None else {("postgres", "password"): self.postgres.password}


def parse_refresh(refresh: str) -> float:
    """Return the seconds between two looks at a reference.

    Raises:
        ValueError: It is neither an interval nor ``on_change``.
    """
    if refresh == ON_CHANGE:
        return ON_CHANGE_SECONDS
    match = _INTERVAL.fullmatch(refresh)
    if match is None or not int(match[1]):
        raise ValueError(f"{refresh!r} is neither on_change nor an interval such as 30s, 5m or 1h")
    return int(match[1]) * _SECONDS[match[2]]
