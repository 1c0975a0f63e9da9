"""Which headers of the records become columns, as the pipeline's author writes it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.key import ColumnName

ALL_DDL = "ARRAY<STRUCT<name: STRING, value: BINARY>>"
"""Type of the column with all headers."""


class HeaderSpec(Frozen):
    """One column."""

    name: str | None = Field(
        default=None,
        max_length=1000,
        description="Name of the header, upper and lower case as sent. Of several with this name the last one counts.",
    )
    all: bool = Field(
        default=False,
        description=f"true, instead of a name: one column with all headers in their order, {ALL_DDL}.",
    )
    as_: ColumnName | None = Field(
        default=None, alias="as", description="Name of the column. Default: the name of the header; headers for all of them."
    )
    type: Literal["STRING", "BINARY", "BIGINT", "INT"] | None = Field(
        default=None,
        description="Type of the column. STRING: the bytes are UTF-8. BINARY: the bytes as they are. BIGINT and INT: the bytes "
        "are a decimal number in text. A record whose header does not fit goes to quarantine. Default: STRING.",
    )

    @model_validator(mode="after")
    def _one_or_all(self) -> HeaderSpec:
        if self.all == (self.name is not None):
            raise ValueError("give either name, for one header, or all: true, for all of them")
        if self.all and self.type is not None:
            raise ValueError(f"type: the column of all headers is always {ALL_DDL}")
        if not self.all and self.as_ is None and not self.name:
            raise ValueError("as: is missing; a header with an empty name needs the name of a column")
        return self

    @property
    def column(self) -> str:
        """The column."""
        return self.as_ or self.name or "headers"

    @property
    def ddl(self) -> str:
        """Its type, as Spark's DDL."""
        return ALL_DDL if self.all else self.type or "STRING"
