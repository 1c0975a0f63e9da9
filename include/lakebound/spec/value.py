"""How the values of the records are decoded, as the pipeline's author writes it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue, StringConstraints, model_validator

from lakebound.formats.schemas import PartOfRecord
from lakebound.frozen import Frozen
from lakebound.spec.schema_source import Ddl, SchemaSourceSpec

FieldPath = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""A field of a JSON record: its name, or the dotted path to it."""


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


class SchemaValueSpec(SchemaSourceSpec):
    """Values have a schema of their own: one that a registry has, or one in a file of the project."""

    part: ClassVar[PartOfRecord] = "value"


PlainValueSpec = BytesValueSpec | StringValueSpec
"""Values that are one column."""
ValueSpec = Annotated[
    JsonValueSpec | SchemaValueSpec | BytesValueSpec | StringValueSpec,
    Field(discriminator="format"),
]
