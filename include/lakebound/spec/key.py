"""How the keys of the records are decoded, as the pipeline's author writes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from lakebound.formats.schemas import PartOfRecord
from lakebound.frozen import Frozen
from lakebound.spec.ddl import UnclearDdlError, read_columns
from lakebound.spec.schema_source import SchemaSourceSpec
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


class _FieldsOfKey(Frozen):
    """Which columns become of keys that have fields."""

    as_: ColumnName | None = Field(
        default=None, alias="as", description=f"{_AS} It is a STRUCT with the columns of the schema, if this has fields."
    )
    columns: tuple[FieldPath, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=500,
        description="Columns of the schema that become columns of their own, instead of one column with the whole key.",
    )

    @model_validator(mode="after")
    def _known_columns(self) -> Self:
        if self.columns is None:
            return self
        if self.as_ is not None:
            raise ValueError("give either as, for one column with the whole key, or columns, for columns of their own")
        if len(set(self.columns)) != len(self.columns):
            raise ValueError("columns: a column is named twice")
        if (known := self._known_names()) is not None:
            check_key_columns(self.columns, known)
        return self

    def _known_names(self) -> list[str] | None:
        """Return the names of the schema's columns; None where only Spark, a registry or a file says them."""
        ddl: str | None = getattr(self, "value_schema", None)
        try:
            return None if ddl is None else [column.name for column in read_columns(ddl)]
        except UnclearDdlError:
            return None

    @property
    def column(self) -> str | None:
        """The column that holds the whole key; None where its fields are columns of their own."""
        return None if self.columns is not None else self.as_ or DEFAULT_COLUMN


class JsonKeySpec(JsonColumns, _FieldsOfKey):
    """Keys are JSON objects."""

    format: Literal["json"]


class SchemaKeySpec(SchemaSourceSpec, _FieldsOfKey):
    """Keys have a schema of their own: one that a registry has, or one in a file of the project."""

    part: ClassVar[PartOfRecord] = "key"


def check_key_columns(columns: Sequence[str], known: Sequence[str]) -> None:
    """Raise an error where a pipeline names a column of the key that the schema does not have.

    Args:
        columns: Those that the pipeline names.
        known: Those of the schema.

    Raises:
        ValueError: Names the first one.
    """
    if unknown := [name for name in columns if name not in known]:
        raise ValueError(f"columns: {unknown[0]} is not one of the columns of the schema: {', '.join(known)}")


KeySpec = Annotated[PlainKeySpec | JsonKeySpec | SchemaKeySpec, Field(discriminator="format")]
