"""How the values of the records are decoded, as the pipeline's author writes it."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, PrivateAttr, StringConstraints, field_validator, model_validator

from lakebound.formats.schemas import ReadSchemas, SchemaKind
from lakebound.frozen import Frozen
from lakebound.spec.ddl import ddl_mistakes
from lakebound.spec.table import NAME

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*")
SubjectStrategy = Literal["topic_name", "record_name", "topic_record_name"]
FieldPath = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""A field of a JSON record: its name, or the dotted path to it."""


def _checked(schema: str) -> str:
    if mistakes := ddl_mistakes(schema):
        raise ValueError("; ".join(mistakes))
    return schema


Ddl = Annotated[str, StringConstraints(min_length=1), AfterValidator(_checked)]
"""Columns as Spark DDL, of types that a table can have."""


class JsonColumns(Frozen):
    """Columns of JSON objects: in a schema as DDL, or as JSON Schema."""

    value_schema: Ddl = Field(
        alias="schema",
        description="Columns as Spark DDL. Every record must have a value for each NOT NULL column.",
    )
    json_schema: dict[str, JsonValue] | None = Field(
        default=None,
        description="JSON Schema of the records, instead of 'schema'. Its required properties become NOT NULL columns.",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_schema(cls, body: Any) -> Any:
        """Work the columns out of a JSON Schema; a spec that was read already has both, and they agree."""
        if not isinstance(body, dict) or not isinstance(body.get("json_schema"), dict):
            return body
        from lakebound.spec.json_schema import to_ddl  # imports Arrow, which few pipelines need here

        columns = to_ddl(body["json_schema"])
        if body.get("schema", columns) != columns:
            raise ValueError("give either schema or json_schema")
        return {**body, "schema": columns}


class JsonValueSpec(JsonColumns):
    """Values are JSON objects."""

    format: Literal["json"]
    unknown_fields: Literal["ignore", "quarantine"] = Field(
        default="ignore", description="What happens to a record that has a field that is not in the schema."
    )
    ignored_fields: tuple[FieldPath, ...] = Field(
        default=(),
        max_length=500,
        description="Fields of the records that are left out on purpose: names, or inside of a column dotted paths such as "
        "customer.tier. No finding names them. A change of this list needs no restart.",
    )

    envelope: Literal["connect"] | None = Field(
        default=None,
        description="connect: values are of Kafka Connect's JsonConverter with schemas.enable=true. The columns are those of "
        "payload; Connect's Decimal, Date, Time and Timestamp are read by each record's own schema.",
    )

    @model_validator(mode="after")
    def _ignores_what_is_dropped(self) -> JsonValueSpec:
        refused = [name for name in self.ignored_fields if "." not in name] if self.unknown_fields == "quarantine" else []
        if refused:
            raise ValueError(
                f"ignored_fields: with unknown_fields: quarantine a record with the field {refused[0]} goes to quarantine, so "
                "the field cannot be ignored; add it to the schema, or write unknown_fields: ignore"
            )
        return self


class BytesValueSpec(Frozen):
    """Values are not decoded: each becomes one binary column ``value``; keys another one ``key``, unless ``key`` says else."""

    format: Literal["bytes"]


class StringValueSpec(Frozen):
    """Values are texts in UTF-8: each becomes one column ``value``."""

    format: Literal["string"]


class SchemaValueSpec(Frozen):
    """Values have a schema of their own: one that a registry has, or one in a file of the project."""

    format: SchemaKind
    registry: str | None = Field(
        default=None,
        pattern=NAME,
        description="The registry that has the schemas: a name in registries.yaml. Values begin with the number of their "
        "schema, or have its GUID in a header, as Confluent's serialisers write them.",
    )
    subject: str | None = Field(
        default=None, min_length=1, description="The subject in the registry. Default: what subject_strategy says."
    )
    subject_strategy: SubjectStrategy = Field(
        default="topic_name",
        description="How the producers name the subject. topic_name: TOPIC-value. record_name: as the record type. "
        "topic_record_name: TOPIC-RECORD TYPE.",
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
        "as order.avsc. Values have nothing around them.",
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
    def read(self) -> ReadSchemas:
        """The schemas that were read for it (``lakebound.landing.read_schemas``)."""
        assert self._read is not None, "its schemas were not read yet"
        return self._read

    @model_validator(mode="after")
    def _one_source(self) -> SchemaValueSpec:
        if (self.registry is None) == (self.schema_file is None):
            raise ValueError("give either registry or schema_file")
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

    def subject_of(self, topic: str, part: Literal["key", "value"] = "value") -> str:
        """Return the subject of a topic's keys or values in the registry."""
        if self.subject is not None:
            return self.subject
        if self.subject_strategy == "topic_name":
            return f"{topic}-{part}"
        return f"{topic}-{self.record}" if self.subject_strategy == "topic_record_name" else str(self.record)


PlainValueSpec = BytesValueSpec | StringValueSpec
"""Values that are one column."""
ValueSpec = Annotated[
    JsonValueSpec | SchemaValueSpec | BytesValueSpec | StringValueSpec,
    Field(discriminator="format"),
]
