"""Protobuf's own messages as values of one column: moments, durations, and what is kept as JSON text. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from lakebound.formats.contract import Problem
from lakebound.formats.protobuf.leaves import DOES_NOT_FIT, Make, Wrong
from lakebound.formats.protobuf.mapping import DURATION, TIMESTAMP
from lakebound.formats.times import FIRST_MS, LAST_MS

_SECONDS, _NANOS = attrgetter("f0"), attrgetter("f1")
_FIRST_SECOND, _LAST_SECOND = FIRST_MS // 1000, LAST_MS // 1000
_MOST_SECONDS = 315_576_000_000
"""Of a duration; Protobuf's bound, both ways."""
_BILLION = 1_000_000_000
_ANY = "google.protobuf.Any"
_NOT_JSON = (json_format.Error, DecodeError, TypeError, ValueError, RecursionError, OverflowError)


def timestamps(path: str) -> Make:
    """Return what makes moments in microseconds of messages whose first fields are seconds and nanoseconds."""

    def make(values: Sequence[Any], wrong: Wrong) -> pa.Array:
        seconds = np.array([*map(_SECONDS, values)], np.int64)
        nanos = np.array([*map(_NANOS, values)], np.int64)
        strange = (seconds < _FIRST_SECOND) | (seconds > _LAST_SECOND) | (nanos < 0) | (nanos >= _BILLION)
        for at in np.flatnonzero(strange).tolist():
            told = f"{path}: {seconds[at]} seconds and {nanos[at]} nanoseconds are no moment of the years 1 to 9999"
            wrong[at] = Problem(DOES_NOT_FIT, told)
        found = np.where(strange, 0, seconds) * 1_000_000 + nanos // 1000
        return pa.array(found).cast(TIMESTAMP)

    return make


def durations(path: str) -> Make:
    """Return what makes seconds with nine digits behind the point of messages whose fields are seconds and nanoseconds."""

    def make(values: Sequence[Any], wrong: Wrong) -> pa.Array:
        found: list[Decimal | None] = []
        for at, value in enumerate(values):
            seconds, nanos = value.f0, value.f1
            if abs(seconds) > _MOST_SECONDS or abs(nanos) >= _BILLION or seconds * nanos < 0:
                told = f"{path}: {seconds} seconds and {nanos} nanoseconds are no duration"
                wrong[at] = Problem(DOES_NOT_FIT, told)
                found.append(None)
            else:
                found.append(Decimal(seconds * _BILLION + nanos).scaleb(-9))
        return pa.array(found, DURATION)

    return make


def presences(values: Sequence[Any], _: Wrong) -> pa.Array:
    """Return that messages without fields are there."""
    return pa.array([True] * len(values), pa.bool_())


def json_texts(path: str, pool: DescriptorPool) -> Make:
    """Return what makes texts of messages in Protobuf's JSON.

    Args:
        path: Names that lead to the field, for messages.
        pool: Knows the messages that an ``Any`` may hold. Another one keeps its bytes, in base64.
    """

    def make(values: Sequence[Any], wrong: Wrong) -> pa.Array:
        found: list[str | None] = []
        for at, value in enumerate(values):
            try:
                found.append(_json_text(value, pool))
            except _NOT_JSON as exc:
                wrong[at] = Problem(DOES_NOT_FIT, f"{path}: it cannot be written as JSON: {exc}")
                found.append(None)
        return pa.array(found, pa.string())

    return make


def _json_text(value: Any, pool: DescriptorPool) -> str:
    if value.DESCRIPTOR.full_name == _ANY and not _is_known(value.type_url, pool):
        made: Any = {"@type": value.type_url, "value": base64.b64encode(value.value).decode()}
    else:
        made = json_format.MessageToDict(value, descriptor_pool=pool)
    # Sorted: a map has no order of its own, and the same record has to be the same text each time.
    return json.dumps(made, ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)


def _is_known(address: str, pool: DescriptorPool) -> bool:
    try:
        pool.FindMessageTypeByName(address.rpartition("/")[2])
    except KeyError:
        return False
    return True
