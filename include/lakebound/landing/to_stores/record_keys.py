"""Which key of a store the key of a Kafka record names. Pure.

A record without a value has nothing else by which its row is found. So a key is taken only where it can mean but one row: a
row that is deleted by mistake comes back only with the next record of its key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import pyarrow as pa

from lakebound.spec.pipeline import PipelineSpec

MOST_KEY_BYTES = 512
"""Of a row of a store; an index of PostgreSQL takes some 2,700 bytes."""
_NUMBER = re.compile(r"0|-?[1-9]\d{0,19}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_BLANKS = " \t\r\n"


@dataclass(frozen=True)
class ReadKey:
    """What the key of a record means.

    Attributes:
        value: The value of the store's key column; None where there is a problem.
        problem: Why the key means no row, in words.
    """

    value: Any = None
    problem: str | None = None


KeyReader = Callable[[bytes | None], ReadKey]
KeyFormat = Literal["string", "bytes"]
"""How a column holds the whole key of a record: as the text that it is, or as its bytes."""


def whole_key_of(spec: PipelineSpec, column: str) -> KeyFormat | None:
    """Return how a column of a pipeline's records holds their whole key; None where it does not."""
    if spec.whole_key is None or spec.whole_key[0] != column:
        return None
    return "string" if spec.whole_key[1] == "string" else "bytes"


def key_reader(column: str, kind: pa.DataType, whole: KeyFormat | None) -> KeyReader:
    """Return what reads the keys of a pipeline's records.

    Args:
        column: The key column of the stores.
        kind: Its type.
        whole: How the column holds the whole key; None: it is a field of the value, and the key is a text that names it.
    """

    def read(key: bytes | None) -> ReadKey:
        if key is None:
            return ReadKey(problem="the record has neither a value nor a key")
        try:
            value = _whole(key, whole) if whole is not None else _value_of(_text_of(key), column, kind)
        except _UnreadableError as exc:
            return ReadKey(problem=f"the record has no value, and its key is not one of {column}: {exc}")
        size = len(value if isinstance(value, bytes) else str(value).encode())
        if size > MOST_KEY_BYTES:
            return ReadKey(problem=f"the record has no value, and its key is longer than {MOST_KEY_BYTES} bytes")
        return ReadKey(value)

    return read


class _UnreadableError(Exception):
    """A key means no row; the text says why."""


def _whole(key: bytes, whole: KeyFormat) -> Any:
    return key if whole == "bytes" else _text_of(key)


def _text_of(key: bytes) -> str:
    try:
        text = key.decode()
    except UnicodeDecodeError as exc:
        raise _UnreadableError("it is not UTF-8") from exc
    if "\x00" in text:
        raise _UnreadableError("it has the character U+0000, as keys in the format of a schema registry begin with")
    return text


def _value_of(text: str, column: str, kind: pa.DataType) -> Any:
    begin = text.lstrip(_BLANKS)[:1]
    if begin == "{":
        return _of_json(_only_field(text, column), kind)
    if begin in ('"', "[") and pa.types.is_string(kind):
        # Whether the quotes are of the value or around it, nobody can tell.
        raise _UnreadableError("it begins as JSON, and is not an object")
    return _of_text(text, kind)


def _only_field(text: str, column: str) -> Any:
    try:
        fields = json.loads(text, object_pairs_hook=list, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise _UnreadableError("it is not a well-formed JSON object") from exc
    names = [name for name, _ in fields]
    if names != [column]:
        # Another field beside it would make it a part of a key: then it names rows of other keys, too.
        raise _UnreadableError(f"it is a JSON object whose only field is not {column}")
    return fields[0][1]


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


def _of_json(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_integer(kind):
        if isinstance(value, bool) or not isinstance(value, int):
            raise _UnreadableError("its value is not a whole number")
        return _in_range(value, kind)
    if not isinstance(value, str):
        raise _UnreadableError("its value is not a text")
    if "\x00" in value:
        raise _UnreadableError("its value has the character U+0000")
    try:
        value.encode()
    except UnicodeEncodeError as exc:
        raise _UnreadableError("an escape in it is half a character") from exc
    return _of_text(value, kind)


def _of_text(text: str, kind: pa.DataType) -> Any:
    if pa.types.is_integer(kind):
        if not _NUMBER.fullmatch(text):
            raise _UnreadableError("it is not a whole number")
        return _in_range(int(text), kind)
    if pa.types.is_date(kind):
        try:
            if not _DATE.fullmatch(text):
                raise ValueError(text)
            return date.fromisoformat(text)
        except ValueError as exc:
            raise _UnreadableError("it is not a date such as 2026-01-31") from exc
    assert pa.types.is_string(kind), f"no key of a store is {kind}"
    return text


def _in_range(number: int, kind: pa.DataType) -> int:
    beyond = 1 << (kind.bit_width - 1)
    if not -beyond <= number < beyond:
        raise _UnreadableError(f"it is beyond a whole number of {kind.bit_width} bits")
    return number
