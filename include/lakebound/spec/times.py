"""A moment as a person writes it. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from lakebound.errors import LakeboundError

_AGO = re.compile(r"^(\d+)\s*(s|m|h|d)\s+ago$")
_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class BadMomentError(LakeboundError):
    """A text names no moment, or one that has not come yet."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text!r} {reason}; give a time such as 2026-11-20T14:05 (UTC), 2026-11-20T14:05+01:00 or '10m ago'")


def parse_past(text: str, now_ms: int) -> int:
    """Return a past moment in milliseconds since the epoch: ISO 8601, UTC where it names no zone, or so long ``ago``.

    Args:
        text: As a person has typed it.
        now_ms: The present time.

    Raises:
        BadMomentError: It is neither, or lies in the future.
    """
    wanted = text.strip()
    ago = _AGO.fullmatch(wanted)
    if ago is not None:
        return now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    try:
        moment = datetime.fromisoformat(wanted)
    except ValueError:
        raise BadMomentError(text, "is not a valid time") from None
    moment_ms = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    if moment_ms > now_ms:
        raise BadMomentError(text, f"is in the future (it is now {in_utc(now_ms)})")
    return moment_ms


def in_utc(moment_ms: int) -> str:
    """Return the moment as people read it, to the millisecond where that matters."""
    moment = datetime.fromtimestamp(moment_ms / 1000, UTC)
    precision = "milliseconds" if moment.microsecond else "seconds"
    return moment.replace(tzinfo=None).isoformat(sep=" ", timespec=precision) + " UTC"


def seconds_in_words(seconds: float) -> str:
    """Return a duration as text, such as ``3 hours``."""
    for unit, length in (("days", 172_800.0), ("hours", 7200.0), ("minutes", 120.0)):
        if seconds >= length:
            return f"{seconds / {'days': 86_400.0, 'hours': 3600.0, 'minutes': 60.0}[unit]:.0f} {unit}"
    return f"{seconds:.0f} s"
