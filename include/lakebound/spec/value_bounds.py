"""Values of YAML with which nobody can work: names of several lines, texts and numbers without an end. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from pydantic import BaseModel

from lakebound.spec.maintenance import MOST_HISTORY_SECONDS
from lakebound.spec.yaml_source import MOST_NUMBER, Keys

MOST_NAME, MOST_PROSE = 4_000, 200_000
"""Characters. Names, addresses and paths are shown in messages; a schema may have thousands of columns."""
_OF_LINES = frozenset({"description", "schema", "json_schema", "query", "kwargs", "rule", "where"})
"""Fields of several lines: what is written for people, in DDL, in JSON or in SQL, and what records are compared with."""


def value_refusals(model: BaseModel) -> Iterator[tuple[Keys, str]]:
    """Yield what is wrong with values of a model, by their keys in the YAML.

    Args:
        model: What the YAML says.
    """
    return ((keys, refused) for keys, name, value in _values(model, ()) if (refused := _value_refusal(name, value)))


def _values(value: Any, keys: Keys, name: str = "") -> Iterator[tuple[Keys, str, Any]]:
    """Yield each text and number with its keys and the name of its field; keys of a mapping are texts, too."""
    if isinstance(value, BaseModel):
        for attribute, field in type(value).model_fields.items():
            own = field.alias or attribute
            yield from _values(getattr(value, attribute), (*keys, own), own)
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield (*keys, key), name, key
            yield from _values(one, (*keys, key), name)
    elif isinstance(value, tuple | list):
        for position, one in enumerate(value):
            yield from _values(one, (*keys, position), name)
    else:
        yield keys, name, str(value) if isinstance(value, PurePath) else value


def _value_refusal(name: str, value: Any) -> str | None:
    """Return why nobody can work with a value; None where anybody can.

    With some numbers no clock and no counter can reckon: they would end whoever looks after all pipelines. A name of several
    lines would forge lines of logs and messages.
    """
    if isinstance(value, str):
        most = MOST_PROSE if name in _OF_LINES else MOST_NAME
        if len(value) > most:
            return f"is longer than {most:,} characters"
        if name not in _OF_LINES and (value.splitlines() not in ([], [value]) or "\t" in value):
            return "must be in one line, without tabs; after `|` or `>` a line end stays: write `>-`"
    elif isinstance(value, int | float):
        largest = MOST_HISTORY_SECONDS if name.endswith("_seconds") else MOST_NUMBER
        if not (math.isfinite(value) and value <= largest):
            return f"must be a number of at most {largest:.0f}"
    return None
