"""Why the bytes of a record are not one JSON object, in words: where the text breaks, and at which field. Pure.

``lakebound.formats.json.record`` alone decides which records are bad. This is asked about bad records only; where it finds
nothing, it says nothing.
It tells no value, only names of fields, characters that JSON forbids, and positions.
"""

from __future__ import annotations

import json
import re
from typing import Any

from lakebound.plain_text import visible_text

MOST_LEVELS = 998
"""Of objects and arrays within each other that are read: those that Spark's reader takes (Jackson's ``DEFAULT_MAX_DEPTH``)."""
MOST_SHOWN = 60
_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
# Each takes a whole text at once, also one that is cut: a search that began again at each escaped quote in it would take time
# by the square of its length.
_INSIDE = r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_NAME = re.compile(rf'"({_INSIDE})(?:"(\s*+:)?)?', re.DOTALL)
_STRINGS = re.compile(rf'"{_INSIDE}"?', re.DOTALL)


class _NoNumberError(Exception):
    """A bare NaN or Infinity."""


def explain_malformed(value: bytes | None) -> str | None:
    """Return why a record's bytes are not one JSON object; None where nothing is found. It never raises."""
    try:
        return _explained(value or b"")
    except Exception:  # a record may hold anything, and a batch must not fail because an explanation is missing
        return None


def _explained(value: bytes) -> str | None:
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if value.startswith(mark):
            return f"the value begins with a byte order mark ({encoding}), which JSON has not: the producer must leave it out"
    if value[:1] == b"\0" and len(value) >= 5:
        number = int.from_bytes(value[1:5])
        return (
            f"the value begins with the five bytes of Confluent's wire format (schema id {number}): it was written with a "
            "schema registry, which value.format avro, protobuf and json_schema read, and json does not"
        )
    text = value.decode()
    levels = levels_of(text)
    if levels > MOST_LEVELS:
        return f"objects and arrays lie {levels} levels deep within each other; at most {MOST_LEVELS} are read"
    return _broken(text)


def levels_of(text: str) -> int:
    """Return how deep objects and arrays of a JSON text lie within each other."""
    level = most = 0
    for character in re.findall(r"[\[\]{}]", _STRINGS.sub("", text)):
        level += 1 if character in "[{" else -1
        most = max(most, level)
    return most


def _broken(text: str) -> str | None:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except _NoNumberError as exc:
        word = str(exc)
        outside = _STRINGS.sub(lambda one: " " * len(one[0]), text)
        return f"{_at(text, outside.index(word))}: {word} is no JSON number"
    except json.JSONDecodeError as exc:
        return _told(text, exc)
    return None if isinstance(found, dict) else f"the value is {_kind(found)}, not a JSON object"


def _refuse(word: str) -> Any:
    raise _NoNumberError(word)


def _told(text: str, error: json.JSONDecodeError) -> str:
    where = _at(text, error.pos)
    if error.msg.startswith("Invalid control character"):
        code = ord(text[error.pos])
        return f"{where}: a raw control character (U+{code:04X}) in a text; JSON writes it as \\u{code:04x}"
    if error.msg == "Extra data":
        return f"{where}: the JSON value has ended, and something follows; a record holds one value"
    if error.pos >= len(text.rstrip()):
        return f"{where}: the text ends within the JSON value; it may have been cut"
    return f"{where}: not well-formed JSON ({error.msg[:1].lower()}{error.msg[1:]})"


def _at(text: str, position: int) -> str:
    """Return the last field that begins before a character, and the character's number."""
    number, name = f"character {position + 1}", None
    for one in _NAME.finditer(text, 0, position):
        name = one[1][:MOST_SHOWN] if one[2] else name
    if name is None:
        return number
    return f"{visible_text(name)}: {number}"


def _kind(found: Any) -> str:
    if isinstance(found, list):
        return "an array"
    if isinstance(found, str):
        return "a text"
    return "null" if found is None else "a word" if isinstance(found, bool) else "a number"
