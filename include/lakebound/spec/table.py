"""A table of a pipeline, as its author writes it: its name, its partitioning and its properties."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from pydantic import Field, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.table_format import TableFormat
from lakebound.spec.table_properties import is_permitted, names_code

NAME = r"^[a-z][a-z0-9_]{0,62}$"
_PARTITION = re.compile(r"(year|month|day|hour|identity)\(([A-Za-z_]\w*)\)|truncate\(([0-9]{1,9}), ?([A-Za-z_]\w*)\)")
_COLUMN = re.compile(r"[A-Za-z_]\w*")

TableRole = Literal["target", "quarantine"]
"""What a table is to its pipeline."""


class PartitionField(NamedTuple):
    """One field of a table's partitioning.

    Attributes:
        transform: ``identity``, ``year``, ``month``, ``day``, ``hour`` or ``truncate``.
        width: Of ``truncate`` alone.
        column: What is transformed.
    """

    transform: str
    width: int | None
    column: str

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        return f"{self.transform}({f'{self.width}, ' if self.width else ''}{self.column})"


class TableSpec(Frozen):
    """One target table."""

    format: TableFormat = Field(description="Table format in which the files and commits are written.")
    name: str = Field(description="namespace.table, or a table name only (the namespace is then 'default').")
    partition_by: tuple[str, ...] = Field(
        default=(),
        description="Partitioning of a new table. The partitioning of an existing table cannot be changed. Delta: columns. "
        "Iceberg: columns, or year(c), month(c), day(c), hour(c), truncate(n, c).",
    )
    properties: dict[str, str] = Field(
        default_factory=dict,
        description="Table properties of Delta or Iceberg, such as delta.logRetentionDuration. A new table gets them. If a "
        "value is changed here, the next start sets it on the existing table, or refuses to start if that is not possible.",
    )

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not all(re.fullmatch(NAME, part) for part in name.split(".")) or name.count(".") > 1:
            raise ValueError(f"{name!r} is not a table name: one or two of [a-z][a-z0-9_]*, joined by a dot")
        return name

    @model_validator(mode="after")
    def _partitioning(self) -> TableSpec:
        for field in self.partition_by:
            if _COLUMN.fullmatch(field):
                continue
            if "(" not in field:
                raise ValueError(
                    f"partition_by: {field!r}: the name of such a column has letters, digits and _ only, and no digit first: "
                    "let the transform give it such a name, or partition by another column"
                )
            if self.format == "delta":
                raise ValueError(f"partition_by: {field!r}: Delta partitions by columns only")
            if not _PARTITION.fullmatch(field):
                raise ValueError(
                    f"partition_by: {field!r} is not one of: column, year(c), month(c), day(c), hour(c), truncate(n, c)"
                )
        return self

    @model_validator(mode="after")
    def _permitted(self) -> TableSpec:
        for name in self.properties:
            if is_permitted(self.format, name):
                continue
            if names_code(name):
                raise ValueError(f"properties: {name} names code to be loaded, which no table may have here: remove it")
            raise ValueError(
                f"properties: {name} is not a property that a pipeline may give a table (docs/how-to/schema-changes.md lists "
                "them): remove it; if the table needs it, whoever runs the installation sets it by SQL: ALTER TABLE … SET "
                "TBLPROPERTIES"
            )
        return self

    @property
    def id(self) -> str:
        """``format:name``, the table's name in progress, reports and messages."""
        return f"{self.format}:{self.name}"

    @property
    def namespace(self) -> str:
        """Part before the dot, or ``default``."""
        return self.name.rpartition(".")[0] or "default"

    @property
    def short_name(self) -> str:
        """Part after the dot."""
        return self.name.rpartition(".")[2]

    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The partitioning that a new table gets; that of an existing one is what the table itself says (``Table.layout``)."""
        fields: list[PartitionField] = []
        for text in self.partition_by:
            match = _PARTITION.fullmatch(text)
            if match is None:
                fields.append(PartitionField("identity", None, text))
            elif match[1]:
                fields.append(PartitionField(match[1], None, match[2]))
            else:
                fields.append(PartitionField("truncate", int(match[3]), match[4]))
        return tuple(fields)
