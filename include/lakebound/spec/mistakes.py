"""What Pydantic finds wrong with a pipeline, in the words and at the lines of its author. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lakebound.formats.schemas import SchemaKind
from lakebound.spec import ways_out
from lakebound.spec.client_settings import refused_setting
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.spark_rules import names_a_secret
from lakebound.spec.yaml_source import Keys, Mistake, YamlSource

MOST_MISTAKES = 100
"""That are put into words: of each one a person would have to read, and an unknown key is looked for everywhere."""
_SECRETS: tuple[Keys, ...] = (
    ("connection", "sasl", "password"),
    ("connection", "sasl", "client_secret"),
    ("connection", "tls_key_password"),
)
_BELOW_NAMES: Mapping[str, frozenset[str]] = {
    "warehouses": frozenset({"access_key_id", "secret_access_key", "session_token", "password", "token", "client_secret"}),
    "registries": frozenset({"password", "token", "tls_key_password"}),
}
"""The fields that name a secret in files in which things stand by names; a name may be any of these words, too."""
_CLIENT: Keys = ("connection", "client")
_NOT_A_PASSWORD = (
    "must say where the secret is stored: {env: NAME} or {file: PATH}; never write the password itself in this file"
)
# Of those that are tagged, by their format: they appear in Pydantic's locations, but not in the YAML.
_TAGS = ("json", *get_args(SchemaKind), "string", "bytes")
_TAGGED = ("value", "key")
_SHAPES = {
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "dict_type": "keys and values",
    "tuple_type": "a list",
    "string_type": "text",
}
_EMPTY = "must not be empty"
_FIXED = {
    "missing": "is missing",
    "too_short": _EMPTY,
    "string_too_short": _EMPTY,
    "invalid_key": "a key must be text",
    "string_pattern_mismatch": "must be lower-case letters, digits and _, beginning with a letter, at most 63 characters",
}


def describe(error: ValidationError, source: YamlSource, model: type[BaseModel] = PipelineSpec) -> list[Mistake]:
    """Return the mistakes, each once; none repeats a value of a login, or one whose setting names a secret.

    Args:
        error: What pydantic found wrong with the file.
        source: The parsed file, which knows the line of each key.
        model: Model against which the file was checked.
    """
    found: dict[tuple[Keys, str], Mistake] = {}
    for detail in error.errors(include_url=False, include_input=True, include_context=True)[:MOST_MISTAKES]:
        tag, keys = _keys(detail["loc"])
        keys, what = _words(detail, keys, tag, model)
        found.setdefault((keys, what), Mistake(source.line_of(keys), what, keys))
    mistakes = list(found.values())
    # Pydantic calls a list too short, too, when its items are wrong.
    return [mistake for mistake in mistakes if mistake.what != _EMPTY or not any(_is_below(m, mistake) for m in mistakes)]


def _is_below(mistake: Mistake, other: Mistake) -> bool:
    return len(mistake.keys) > len(other.keys) and mistake.keys[: len(other.keys)] == other.keys


def field_name(keys: Keys) -> str:
    """Return the field as its author would write it, such as ``tables[0].name``."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}"
    return text.removeprefix(".")


def secret_keys(keys: Keys) -> Keys | None:
    """Return the field that names a secret, at or above these keys; what is written below it may be the secret itself."""
    if keys and keys[0] in _BELOW_NAMES:
        secrets = _BELOW_NAMES[str(keys[0])]
        depth = next((depth for depth, key in enumerate(keys) if depth > 1 and key in secrets), None)
        return None if depth is None else keys[: depth + 1]
    if _in_a_login(keys) and keys[3:4] == ("password",):
        return keys[:4]
    return next((known for known in _SECRETS if keys[: len(known)] == known), None)


def _in_a_login(keys: Keys) -> bool:
    """Whether these are keys of a database of reference data or of a store; somebody may write an address with its password."""
    return (keys[:1] == ("reference",) and keys[2:3] == ("postgres",)) or (
        keys[:1] == ("to_stores",) and keys[2:3] in (("postgres",), ("redis",))
    )


def _keys(location: tuple[str | int, ...]) -> tuple[str | None, Keys]:
    """Return the tag in Pydantic's location, and the location as in the YAML."""
    keys = tuple(key for key in location if key != "[key]")
    if keys[:1] and keys[0] in _TAGGED and len(keys) > 1 and keys[1] in _TAGS:
        return str(keys[1]), (keys[0], *keys[2:])
    return None, keys


def _tag_words(kind: str, context: Mapping[str, Any], keys: Keys) -> tuple[Keys, str]:
    """Return the field that says which of several kinds is meant, and what it may say."""
    field = str(context["discriminator"]).strip("'")
    tags = _TAGS if keys[0] in _TAGGED else tuple(str(context.get("expected_tags", "")).replace("'", "").split(", "))
    known = " or ".join((", ".join(tags[:-1]), tags[-1])) if len(tags) > 1 else tags[0]
    if kind == "union_tag_not_found":
        return (*keys, field), f"is missing: {known}" if known else "is missing"
    written = str(context.get("tag"))
    close = difflib.get_close_matches(written, tags, n=1)
    instead = ways_out.of_format(written) or (f"did you mean {close[0]!r}?" if close else None)
    return (*keys, field), f"must be {known}, not {written!r}{f'; {instead}' if instead else ''}"


def _words(detail: ErrorDetails, keys: Keys, tag: str | None, model: type[BaseModel]) -> tuple[Keys, str]:
    kind, context = detail["type"], detail.get("ctx") or {}
    if (secret := secret_keys(keys)) and kind != "value_error":
        # A key might be the password: `password: {hunter2}`.
        return secret, _NOT_A_PASSWORD
    if kind == "extra_forbidden":
        reason = refused_setting(str(keys[-1])) if keys[:-1] == _CLIENT else None
        return keys, f"cannot be set: {reason}" if reason else _unknown_key(keys, tag, model)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _tag_words(kind, context, keys)
    if kind in _SHAPES:
        way_out = ways_out.of_shape(keys, detail["input"])
        return keys, f"must be {_SHAPES[kind]}{_instead(detail, keys)}{f', {way_out}' if way_out else ''}"
    if kind in _FIXED:
        way_out = ways_out.of_name(keys) if kind == "string_pattern_mismatch" else None
        return keys, f"{_FIXED[kind]}{f'; {way_out}' if way_out else ''}"
    if kind == "literal_error":
        return keys, f"must be {str(context['expected']).replace(chr(39), '')}{_instead(detail, keys)}"
    return keys, detail["msg"].removeprefix("Value error, ").replace("Input should be", "must be")


def _instead(detail: ErrorDetails, keys: Keys) -> str:
    found = detail["input"]
    if keys[:1] == ("connection",) or _in_a_login(keys) or _may_be_a_secret(keys):
        return ""
    if found is None:
        return ", and is empty"
    if isinstance(found, Mapping):
        return ", not keys and values"
    if isinstance(found, list | tuple):
        return ", not a list"
    if isinstance(found, str):
        return f", not {found!r}"
    shown = str(found).lower() if isinstance(found, bool) else str(found)
    return f", not {shown}" + (f'; write "{shown}"' if detail["type"] == "string_type" else "")


def _may_be_a_secret(keys: Keys) -> bool:
    """Whether the value is a setting of Spark's under the name of a secret: that is a mistake, and its value is not told."""
    return keys[:2] == ("spark", "conf") and any(names_a_secret(str(key)) for key in keys[2:])


def _unknown_key(keys: Keys, tag: str | None, model: type[BaseModel]) -> str:
    schema = _schema(model)
    own, key = _properties(schema, keys[:-1], tag), str(keys[-1])
    if instead := ways_out.of_key(keys):
        return f"unknown key; {instead}"
    if close := difflib.get_close_matches(key, own, n=1):
        return f"unknown key; did you mean {close[0]!r}?"
    elsewhere = [place for place, names in _places(schema) if key in names and place != field_name(keys[:-1])]
    if elsewhere:
        return f"unknown key here; it belongs under {' or '.join(elsewhere) or 'the root'}"
    return f"unknown key; known here: {', '.join(sorted(own))}" if own else "unknown key"


@lru_cache(maxsize=8)
def _schema(model: type[BaseModel]) -> Mapping[str, Any]:
    return model.model_json_schema(by_alias=True)


def _places(schema: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of the root that have keys of their own."""
    for name in schema["properties"]:
        yield name, _properties(schema, (name,), None) or _properties(schema, (name, 0), None)


def _properties(schema: Mapping[str, Any], keys: Keys, tag: str | None) -> list[str]:
    """Return the keys that are known at ``keys``."""
    nodes = [schema]
    for key in keys:
        nodes = [child for node in nodes for child in _children(schema, node, key)]
    return [name for node in nodes if _has_tag(node, tag) for name in node.get("properties", {})]


def _children(schema: Mapping[str, Any], node: Mapping[str, Any], key: str | int) -> list[Mapping[str, Any]]:
    child = node.get("items") if isinstance(key, int) else node.get("properties", {}).get(key, node.get("additionalProperties"))
    if not child:
        return []
    options = child.get("anyOf") or child.get("oneOf") or [child]
    return [schema["$defs"][option["$ref"].rpartition("/")[2]] if "$ref" in option else option for option in options]


def _has_tag(node: Mapping[str, Any], tag: str | None) -> bool:
    own = node.get("properties", {}).get("format", {})
    return tag is None or tag in own.get("enum", [own.get("const", tag)])
