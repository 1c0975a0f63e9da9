"""How the keys of the records are decoded, as the pipeline's author writes it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.ddl import UnclearDdlError, read_columns
from lakebound.spec.value import FieldPath, JsonColumns

DEFAULT_COLUMN = "key"
ColumnName = Annotated[str, Field(min_length=1, max_length=500)]
_AS = "Name of the column that gets the whole key. Default: key."


class PlainKeySpec(Frozen):
    """Keys are texts, or are not decoded: each becomes one column."""

    format: Literal["string", "bytes"]
    as_: ColumnName = Field(default=DEFAULT_COLUMN, alias="as", description=_AS)

    @property
    def column(self) -> str:
        """The column that holds the key."""
        return self.as_


class JsonKeySpec(JsonColumns):
    """Keys are JSON objects."""

    format: Literal["json"]
    as_: ColumnName | None = Field(
        default=None, alias="as", description=f"{_AS} It is a STRUCT with the columns of the schema."
    )
    columns: tuple[FieldPath, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Columns of the schema that become columns of their own, instead of one column with the whole key.",
    )

    @model_validator(mode="after")
    def _known_columns(self) -> JsonKeySpec:
        if self.columns is None:
            return self
        if self.as_ is not None:
            raise ValueError("give either as, for one column with the whole key, or columns, for columns of their own")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns: a column is named twice")
        try:
            known = [column.name for column in read_columns(self.value_schema)]
        except UnclearDdlError:
            return self
        if unknown := [name for name in self.columns if name not in known]:
            raise ValueError(f"columns: {unknown[0]} is not one of the columns of the schema: {', '.join(known)}")
        return self

    @property
    def column(self) -> str | None:
        """The column that holds the whole key; None where its fields are columns of their own."""
        return None if self.columns is not None else self.as_ or DEFAULT_COLUMN


KeySpec = Annotated[PlainKeySpec | JsonKeySpec, Field(discriminator="format")]
"""Formats with a schema of their own join here, and in ``lakebound_spark.batch.record_format``."""
