"""Durations in Delta's table properties, such as ``interval 1 week``. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

DELETED_FILES = "delta.deletedFileRetentionDuration"
LOG = "delta.logRetentionDuration"
TRANSACTIONS = "delta.setTransactionRetentionDuration"

_DAY_MS = 86_400_000
DEFAULTS_MS = {DELETED_FILES: 7 * _DAY_MS, LOG: 30 * _DAY_MS}
"""What a table without the property has."""

_UNITS_MS = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": _DAY_MS, "week": 7 * _DAY_MS}
_PART = r"(\d+)\s+(" + "|".join(_UNITS_MS) + r")s?"
_INTERVAL = re.compile(rf"\s*(?:interval\s+)?{_PART}(?:\s+{_PART})*\s*", re.IGNORECASE)


def parse_ms(text: str) -> int | None:
    """Return an interval in milliseconds; None where it is none that is known."""
    if not _INTERVAL.fullmatch(text):
        return None
    return sum(int(number) * _UNITS_MS[unit.lower()] for number, unit in re.findall(_PART, text, re.IGNORECASE))


def duration_ms(properties: Mapping[str, str | None], name: str) -> int:
    """Return a property's duration; the default where it is not set, or cannot be read."""
    found = explicit_ms(properties, name)
    return DEFAULTS_MS[name] if found is None else found


def explicit_ms(properties: Mapping[str, str | None], name: str) -> int | None:
    """Return the duration that somebody has set; the default where it cannot be read, None where it is not set."""
    text = properties.get(name)
    if text is None:
        return None
    found = parse_ms(text)
    return DEFAULTS_MS.get(name, 0) if found is None else found
