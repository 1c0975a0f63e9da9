"""How the values of the records are decoded, as the pipeline's author writes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, StringConstraints, field_validator, model_validator

from lakebound.frozen import Frozen
from lakebound.spec.ddl import ddl_mistakes
from lakebound.spec.json_schema import to_ddl

FieldPath = Annotated[str, StringConstraints(min_length=1, max_length=500)]
"""A field of a JSON record: its name, or the dotted path to it."""


class JsonValueSpec(Frozen):
    """Values are JSON objects."""

    format: Literal["json"]
    value_schema: str = Field(
        alias="schema",
        min_length=1,
        description="Columns as Spark DDL. Every record must have a value for each NOT NULL column.",
    )
    json_schema: dict[str, JsonValue] | None = Field(
        default=None,
        description="JSON Schema of the records, instead of 'schema'. Its required properties become NOT NULL columns.",
    )
    unknown_fields: Literal["ignore", "quarantine"] = Field(
        default="ignore", description="What happens to a record that has a field that is not in the schema."
    )
    ignored_fields: tuple[FieldPath, ...] = Field(
        default=(),
        max_length=500,
        description="Fields of the records that are left out on purpose: names, or inside of a column dotted paths such as "
        "customer.tier. No finding names them. A change of this list needs no restart.",
    )

    @model_validator(mode="before")
    @classmethod
    def _one_schema(cls, body: Any) -> Any:
        """Work the columns out of a JSON Schema; a spec that was read already has both, and they agree."""
        if not isinstance(body, dict) or not isinstance(body.get("json_schema"), dict):
            return body
        columns = to_ddl(body["json_schema"])
        if body.get("schema", columns) != columns:
            raise ValueError("give either schema or json_schema")
        return {**body, "schema": columns}

    @model_validator(mode="after")
    def _ignores_what_is_dropped(self) -> JsonValueSpec:
        refused = [name for name in self.ignored_fields if "." not in name] if self.unknown_fields == "quarantine" else []
        if refused:
            raise ValueError(
                f"ignored_fields: with unknown_fields: quarantine a record with the field {refused[0]} goes to quarantine, so "
                "the field cannot be ignored; add it to the schema, or write unknown_fields: ignore"
            )
        return self

    @field_validator("value_schema")
    @classmethod
    def _types(cls, schema: str) -> str:
        mistakes = ddl_mistakes(schema)
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return schema


class BytesValueSpec(Frozen):
    """Values are not decoded: each becomes one binary column ``value``."""

    format: Literal["bytes"]


ValueSpec = Annotated[JsonValueSpec | BytesValueSpec, Field(discriminator="format")]
