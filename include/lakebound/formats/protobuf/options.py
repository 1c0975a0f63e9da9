"""Options in a .proto text: those that change what bytes mean are kept, all others are read and left out. Pure.

An option that a company made itself (``(buf.validate.field)``) never changes what the bytes mean.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pb2 import FeatureSet

from lakebound.formats.protobuf.tokens import Tokens

_FEATURES = "features"


def read_option(tokens: Tokens, options: Any, kept: tuple[str, ...] = ()) -> tuple[str, str]:
    """Read ``NAME = VALUE``; return the name and the value as it is written ("" of an aggregate).

    Args:
        tokens: At the name.
        options: Gets the features of an edition, and those options of ``kept`` that are ``true``.
        kept: Names of options that are true or false.

    Raises:
        UnreadableSchemaError: It is none, or a feature that there is not.
    """
    name = _option_name(tokens)
    tokens.expect("=")
    if name[0] == _FEATURES:
        _read_feature(tokens, options.features, name[1:])
        return _FEATURES, ""
    value = _value(tokens)
    if name[0] in kept and value == "true":
        setattr(options, name[0], True)
    return ".".join(name), value


def read_options(tokens: Tokens, options: Any) -> dict[str, str]:
    """Read options in brackets, where there are any; return values as they are written, by name.

    Raises:
        UnreadableSchemaError: They are none.
    """
    found: dict[str, str] = {}
    if tokens.take("["):
        while not tokens.take("]"):
            name, value = read_option(tokens, options)
            found[name] = value
            if tokens.now.text != "]":
                tokens.expect(",")
    return found


def _option_name(tokens: Tokens) -> list[str]:
    parts = [_name_part(tokens)]
    while tokens.take("."):
        parts.append(_name_part(tokens))
    return parts


def _name_part(tokens: Tokens) -> str:
    if not tokens.take("("):
        return tokens.name()
    inside = tokens.path()
    tokens.expect(")")
    return f"({inside})"


def _value(tokens: Tokens) -> str:
    if tokens.take("{"):
        tokens.skip_until("}")
        return ""
    if tokens.now.kind == "string":
        return tokens.string()
    sign = "-" if tokens.take("-") else "+" if tokens.take("+") else ""
    if tokens.now.kind not in ("name", "number"):
        raise tokens.error("a value is missing")
    return sign + tokens.next().text


def _read_feature(tokens: Tokens, features: FeatureSet, name: list[str]) -> None:
    if not name:
        tokens.expect("{")
        _read_features(tokens, features)
    elif name[0].startswith("("):  # of one language
        _value(tokens)
    else:
        _set_feature(tokens, features, name[0])


def _read_features(tokens: Tokens, features: FeatureSet) -> None:
    while not tokens.take("}"):
        if tokens.take("["):
            tokens.skip_until("]")
            tokens.take(":")
            _value(tokens)
        else:
            name = tokens.name()
            tokens.take(":")
            _set_feature(tokens, features, name)
        tokens.take(",") or tokens.take(";")


def _set_feature(tokens: Tokens, features: FeatureSet, name: str) -> None:
    field = FeatureSet.DESCRIPTOR.fields_by_name.get(name)
    if field is None or field.enum_type is None:
        raise tokens.error(f"there is no feature {name}")
    value = field.enum_type.values_by_name.get(tokens.now.text)
    if value is None:
        raise tokens.error(f"the feature {name} has no such value")
    tokens.next()
    setattr(features, name, value.number)
