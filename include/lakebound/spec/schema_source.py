"""Where the schemas of values or keys are, as the pipeline's author writes it: in a registry, or in a file of the project."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, PrivateAttr, StringConstraints, field_validator, model_validator

from lakebound.formats.schemas import PartOfRecord, ReadSchemas, SchemaKind
from lakebound.frozen import Frozen
from lakebound.spec.ddl import ddl_mistakes
from lakebound.spec.table import NAME

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
SubjectStrategy = Literal["topic_name", "record_name", "topic_record_name"]


def _checked(schema: str) -> str:
    if mistakes := ddl_mistakes(schema):
        raise ValueError("; ".join(mistakes))
    return schema


Ddl = Annotated[str, StringConstraints(min_length=1), AfterValidator(_checked)]
"""Columns as Spark DDL, of types that a table can have."""


class SchemaSourceSpec(Frozen):
    """Where the schemas of a part of the records are.

    Attributes:
        part: Which part it is.
    """

    part: ClassVar[PartOfRecord]

    format: SchemaKind
    registry: str | None = Field(
        default=None,
        pattern=NAME,
        description="The registry that has the schemas: a name in registries.yaml. Values and keys begin with the id of "
        "their schema, or have its GUID in a header, as Confluent's serialisers write them.",
    )
    subject: str | None = Field(
        default=None, min_length=1, description="The subject in the registry. Default: what subject_strategy says."
    )
    subject_strategy: SubjectStrategy = Field(
        default="topic_name",
        description="How the producers name the subject. topic_name: TOPIC-value or TOPIC-key. record_name: as the record "
        "type. topic_record_name: TOPIC-RECORD TYPE.",
    )
    record: str | None = Field(
        default=None,
        min_length=1,
        description="Full name of the type of the records, such as com.example.Order. Needed where the schema has several "
        "types, and with the strategies record_name and topic_record_name.",
    )
    schema_file: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of a registry: the file with the schema, in the folder schemas beside that of the pipelines, such "
        "as order.avsc. Values and keys have nothing around them.",
    )
    value_schema: Ddl | None = Field(
        default=None,
        alias="schema",
        description="Columns that are landed, as Spark DDL, by the names of the fields. Default: all that the schema has; the "
        "tables then follow its versions.",
    )

    _read: ReadSchemas | None = PrivateAttr(default=None)

    def with_schemas(self, read: ReadSchemas) -> Self:
        """Return the same with the schemas that were read for it."""
        copy = self.model_copy()
        copy._read = read
        return copy

    @property
    def is_read(self) -> bool:
        """Whether its schemas were read."""
        return self._read is not None

    @property
    def read(self) -> ReadSchemas:
        """The schemas that were read for it (``lakebound.landing.read_schemas``)."""
        assert self._read is not None, "its schemas were not read yet"
        return self._read

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.registry is None and self.schema_file is None:
            raise ValueError(
                "say where the schemas are: registry: (a name in registries.yaml) or schema_file: (a file of the project)"
            )
        if self.registry is not None and self.schema_file is not None:
            raise ValueError("give either registry or schema_file, not both")
        if self.schema_file is not None and (self.subject is not None or self.subject_strategy != "topic_name"):
            named = "subject" if self.subject is not None else "subject_strategy"
            raise ValueError(f"{named}: only a registry has subjects; remove it, or name a registry in place of schema_file")
        if self.subject is not None and self.subject_strategy != "topic_name":
            raise ValueError("subject: give either subject or subject_strategy")
        if self.subject_strategy != "topic_name" and self.record is None:
            raise ValueError(f"record: is missing; the strategy {self.subject_strategy} needs the full name of the record type")
        return self

    @field_validator("schema_file")
    @classmethod
    def _in_the_folder(cls, file: str | None) -> str | None:
        if file is not None and (not _FILE.fullmatch(file) or ".." in file):
            raise ValueError(f"{file!r} is not a path in the folder 'schemas', such as order.avsc or shop/order.proto")
        return file

    def subject_of(self, topic: str) -> str:
        """Return the subject of the part of a topic's records in the registry."""
        if self.subject is not None:
            return self.subject
        if self.subject_strategy == "topic_name":
            return f"{topic}-{self.part}"
        return f"{topic}-{self.record}" if self.subject_strategy == "topic_record_name" else str(self.record)
