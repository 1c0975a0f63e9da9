"""Protobuf's own messages as values of one column: moments, durations, and what is kept as JSON text."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from lakebound.formats.contract import Problem
from lakebound.formats.protobuf.buffer import Numbers
from lakebound.formats.protobuf.columns import Column
from lakebound.formats.protobuf.level import DOES_NOT_FIT, Level
from lakebound.formats.protobuf.mapping import DURATION, TIMESTAMP
from lakebound.formats.times import FIRST_MS, LAST_MS

SECONDS_TAG, NANOS_TAG = 1 << 3, 2 << 3
"""Of the fields of a moment and of a duration."""
_FIRST_SECOND, _LAST_SECOND = FIRST_MS // 1000, LAST_MS // 1000
_MOST_SECONDS = 315_576_000_000
"""Of a duration; Protobuf's bound, both ways."""
_BILLION = 1_000_000_000
_ANY = "google.protobuf.Any"
_NOT_JSON = (json_format.Error, DecodeError, TypeError, ValueError, RecursionError, OverflowError)


def timestamps(path: str) -> Column:
    """Return the column of moments, in microseconds."""

    def column(level: Level) -> pa.Array:
        seconds, nanos = _number(level, SECONDS_TAG), _number(level, NANOS_TAG).astype(np.int32)
        bad = (seconds < _FIRST_SECOND) | (seconds > _LAST_SECOND) | (nanos < 0) | (nanos >= _BILLION)
        level.note(bad, np.arange(len(level)), _told(path, seconds, nanos, "no moment of the years 1 to 9999"))
        return pa.array(np.where(bad, 0, seconds) * 1_000_000 + nanos // 1000).view(TIMESTAMP)

    return column


def durations(path: str) -> Column:
    """Return the column of seconds with nine digits behind the point."""

    def column(level: Level) -> pa.Array:
        seconds, nanos = _number(level, SECONDS_TAG), _number(level, NANOS_TAG).astype(np.int32)
        bad = (seconds < -_MOST_SECONDS) | (seconds > _MOST_SECONDS) | (nanos <= -_BILLION) | (nanos >= _BILLION)
        bad |= ((seconds < 0) & (nanos > 0)) | ((seconds > 0) & (nanos < 0))
        level.note(bad, np.arange(len(level)), _told(path, seconds, nanos, "no duration"))
        totals = zip(np.where(bad, 0, seconds).tolist(), nanos.tolist(), strict=True)
        return pa.array([Decimal(whole * _BILLION + rest).scaleb(-9) for whole, rest in totals], DURATION)

    return column


def presences(level: Level) -> pa.Array:
    """Return that messages without fields are there."""
    return pa.array([True] * len(level), pa.bool_())


def json_texts(message: Descriptor, path: str) -> Column:
    """Return the column of messages in Protobuf's JSON.

    What an ``Any`` holds is written so where the schema of the message knows it; else it is bytes in base64.

    Args:
        message: Which they are.
        path: Names that lead to them, for messages.
    """
    made = GetMessageClass(message)

    def column(level: Level) -> pa.Array:
        found: list[str | None] = []
        for owner, raw in enumerate(_bytes(level)):
            value = made()
            try:
                value.MergeFromString(raw)
            except DecodeError:
                level.note_malformed(owner, f"{path} is no {message.full_name}")
                found.append(None)
                continue
            try:
                found.append(_json_text(value))
            except _NOT_JSON as exc:
                problem = Problem(DOES_NOT_FIT, f"{path}: it cannot be written as JSON: {exc}")
                level.batch.wrong.setdefault(int(level.records[owner]), problem)
                found.append(None)
        return pa.array(found, pa.string())

    return column


def _number(level: Level, tag: int) -> Numbers:
    found = level.fields.of(tag).last
    numbers = np.zeros(len(level), np.int64)
    numbers[found.owners] = found.values
    return numbers


def _told(path: str, seconds: Numbers, nanos: Any, what: str) -> Callable[[int], str]:
    return lambda at: f"{path}: {seconds[at]} seconds and {nanos[at]} nanoseconds are {what}"


def _bytes(level: Level) -> list[bytes]:
    """Return the bytes of each message."""
    parts: list[list[bytes]] = [[] for _ in range(len(level))]
    spans, raw = level.spans, level.batch.buffer.raw
    for owner, start, end in zip(spans.owners.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True):
        parts[owner].append(raw[start:end])  # joined once: a message may come in very many parts
    return [*map(b"".join, parts)]


def _json_text(value: Any) -> str:
    pool = value.DESCRIPTOR.file.pool
    if value.DESCRIPTOR.full_name == _ANY and not _is_known(value.type_url, pool):
        made: Any = {"@type": value.type_url, "value": base64.b64encode(value.value).decode()}
    else:
        made = json_format.MessageToDict(value, descriptor_pool=pool)
    # Sorted: a map has no order of its own, and the same record has to be the same text each time.
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)


def _is_known(address: str, pool: Any) -> bool:
    try:
        pool.FindMessageTypeByName(address.rpartition("/")[2])
    except KeyError:
        return False
    return True
