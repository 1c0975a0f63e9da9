"""What a schema registry says, read from its JSON and bounded. Pure.

The API: https://docs.confluent.io/platform/current/schema-registry/develop/api.html.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lakebound.formats.schemas import SchemaKind, SchemaText

_MOST_REASON_CHARACTERS = 300
_KINDS: Mapping[str, SchemaKind] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}
_Name = Annotated[str, Field(min_length=1, max_length=1000)]
_Id = Annotated[int, Field(ge=0, lt=2**32)]
_Version = Annotated[int, Field(ge=1, lt=2**31)]
_M = TypeVar("_M")


class UnreadableAnswerError(ValueError):
    """An answer is not one of a schema registry; the text says what it is, and nothing that may be a secret."""


class TooLargeAnswerError(UnreadableAnswerError):
    """An answer has more bytes than any that is read."""


class NoSuchPathError(UnreadableAnswerError):
    """What answers has nothing at the path, and does not say so as a registry does: it does not know this request."""


class UnusableSchemaError(ValueError):
    """A registry has a schema, and values cannot be read with it; the text says why."""


class UnusableVersionError(UnusableSchemaError):
    """The same of a version, of which the registry has told more.

    Attributes:
        id: What records say of it; None where the registry does not tell.
        own: Its schema without what it imports; None where it is none that is read.
    """

    def __init__(self, problem: str, schema_id: int | None, own: SchemaText | None) -> None:
        self.id, self.own = schema_id, own
        super().__init__(problem)


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ReferenceAnswer(_Answer):
    """Which schema another one imports, and by which name."""

    name: _Name
    subject: _Name
    version: _Version


class RuleAnswer(_Answer):
    """A rule of a schema."""

    name: str | None = None
    type: str | None = None
    disabled: bool | None = None


class RulesAnswer(_Answer):
    """Rules of a schema: what a serialiser does to values besides writing them."""

    migration: tuple[RuleAnswer, ...] | None = Field(default=None, alias="migrationRules")
    domain: tuple[RuleAnswer, ...] | None = Field(default=None, alias="domainRules")
    encoding: tuple[RuleAnswer, ...] | None = Field(default=None, alias="encodingRules")


class SchemaAnswer(_Answer):
    """A schema, as it is by its id or by its version; of the former neither subject nor version is said."""

    schema_text: str = Field(alias="schema")
    schema_type: str | None = Field(default=None, alias="schemaType")
    references: tuple[ReferenceAnswer, ...] | None = None
    rules: RulesAnswer | None = Field(default=None, alias="ruleSet")
    id: _Id | None = None
    version: _Version | None = None
    guid: str | None = Field(default=None, max_length=100)

    @property
    def kind(self) -> SchemaKind:
        """Its format.

        Raises:
            UnusableSchemaError: It is one that Lakebound does not read.
        """
        name = self.schema_type or "AVRO"
        if name not in _KINDS:
            raise UnusableSchemaError(f"its type is {cut(name)}, and Lakebound reads {', '.join(_KINDS)}")
        return _KINDS[name]

    @property
    def own(self) -> SchemaText | None:
        """The schema without what it imports; None where it is of a format that Lakebound does not read."""
        kind = _KINDS.get(self.schema_type or "AVRO")
        return None if kind is None else SchemaText(kind, self.schema_text)


class SubjectVersionAnswer(_Answer):
    """A version of a subject that has a schema."""

    subject: _Name
    version: _Version


class ProblemAnswer(_Answer):
    """Why a registry does not do what it was asked for."""

    error_code: int
    message: str = ""

    def is_of(self, status: int) -> bool:
        """Return whether it is one of the registry's own codes, such as 40403 with status 404.

        Of a path that is not there, the server of a registry says 404 itself; a gateway before it says anything.
        """
        return self.error_code // 100 == status


class CompatibilityAnswer(_Answer):
    """Which changes of its schemas a subject allows."""

    level: str = Field(alias="compatibilityLevel", max_length=100)


@dataclass(frozen=True)
class _Kind:
    field: str
    words: str


_RULES = (_Kind("encoding", "encoding"), _Kind("migration", "migration"), _Kind("domain", "data"))
_versions = TypeAdapter(list[_Version])
_subject_versions = TypeAdapter(list[SubjectVersionAnswer])
_types = TypeAdapter(list[str])


def read_schema(body: bytes) -> SchemaAnswer:
    """Return a schema.

    Raises:
        UnusableSchemaError: It is one, with something beside it that no registry says; others can still be read.
        UnreadableAnswerError: It is none.
    """
    try:
        return _read(SchemaAnswer, body, "a schema")
    except UnreadableAnswerError as exc:
        if _has_schema(body):
            raise UnusableSchemaError(f"the registry {str(exc).removeprefix('it ')}") from None
        raise


def read_versions(body: bytes) -> list[int]:
    """Return the numbers of a subject's versions, oldest first.

    Raises:
        UnreadableAnswerError: They are none.
    """
    try:
        _check_json(body)
        return sorted(_versions.validate_json(body, strict=True))
    except ValidationError:
        raise UnreadableAnswerError("it answers with JSON that is not a list of versions") from None


def read_subjects(body: bytes) -> list[str]:
    """Return the names of the subjects that have a schema, each once, in the order of the answer.

    Raises:
        UnreadableAnswerError: They are none.
    """
    try:
        _check_json(body)
        return list(dict.fromkeys(one.subject for one in _subject_versions.validate_json(body, strict=True)))
    except ValidationError:
        raise UnreadableAnswerError("it answers with JSON that is not a list of versions with subjects") from None


def read_types(body: bytes) -> list[str]:
    """Return the formats of schemas that a registry knows.

    Raises:
        UnreadableAnswerError: They are none.
    """
    try:
        _check_json(body)
        return _types.validate_json(body, strict=True)
    except ValidationError:
        raise UnreadableAnswerError("it answers with JSON that is not a list of formats") from None


def read_compatibility(body: bytes) -> str:
    """Return a compatibility mode, such as BACKWARD.

    Raises:
        UnreadableAnswerError: It is none.
    """
    return cut(_read(CompatibilityAnswer, body, "a compatibility mode").level)


def read_problem(body: bytes) -> ProblemAnswer | None:
    """Return what a registry says of a request that it refuses; None where the answer is not a registry's."""
    try:
        return _read(ProblemAnswer, body, "an error")
    except UnreadableAnswerError:
        return None


def is_object(body: bytes) -> bool:
    """Return whether an answer is a JSON object, as each reason is that a registry gives."""
    try:
        return isinstance(json.loads(body), dict)
    except (ValueError, RecursionError):
        return False


def check_rules(schema: SchemaAnswer) -> None:
    """Raise an error where a value is not what the schema says before rules were applied to it.

    Raises:
        UnusableSchemaError: The schema has rules that are switched on.
    """
    if schema.rules is None:
        return
    for kind in _RULES:
        rules: Sequence[RuleAnswer] = getattr(schema.rules, kind.field) or ()
        active = [rule for rule in rules if not rule.disabled]
        if not active:
            continue
        if any((rule.type or "").startswith("ENCRYPT") for rule in active):
            raise UnusableSchemaError(
                f"it has an encryption rule ({_named(active)}): encrypted fields are not supported. Land the topic as bytes, "
                f"or write to a topic without this rule"
            )
        raise UnusableSchemaError(
            f"it has {kind.words} rules ({_named(active)}), which change or check values outside of the schema: they are not "
            f"supported. Land the topic as bytes, or register the schema without these rules"
        )


def _has_schema(body: bytes) -> bool:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("schema"), str)


def _check_json(body: bytes) -> None:
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        what = "HTML" if body.lstrip()[:1] == b"<" else "nothing" if not body.strip() else "text that is not JSON"
        raise UnreadableAnswerError(f"it answers with {what}") from None


def cut(text: str) -> str:
    """Return what a registry says, in one line of bounded length and without what a terminal would obey."""
    words = " ".join("".join(char if char.isprintable() else " " for char in text[: 2 * _MOST_REASON_CHARACTERS]).split())
    return words if len(words) <= _MOST_REASON_CHARACTERS else f"{words[: _MOST_REASON_CHARACTERS - 1]}…"


def _read(model: type[_M], body: bytes, what: str) -> _M:
    try:
        _check_json(body)
        found: _M = TypeAdapter(model).validate_json(body)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(map(str, first["loc"]))
        where = f" ({cut(field)}: {first['msg']})" if field else ""
        raise UnreadableAnswerError(f"it answers with JSON that is not {what}{where}") from None
    return found


def _named(rules: Sequence[RuleAnswer]) -> str:
    return cut(", ".join(rule.name or rule.type or "unnamed" for rule in rules))
