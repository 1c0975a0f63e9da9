"""Numbers that look like times: in which unit a number counts since 1970. Pure."""

from __future__ import annotations

from typing import Literal

Unit = Literal["seconds", "milliseconds", "microseconds", "nanoseconds"]

PER_SECOND: dict[Unit, int] = {"seconds": 1, "milliseconds": 1000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}
_FIRST, _LAST = 946_684_800, 4_102_444_800
"""2000 and 2100. Within these years no number is a time in two units."""


def unit_of(number: int) -> Unit | None:
    """Return the unit in which a number is a time of the years 2000 to 2099; None where it is no such time in any unit."""
    return next((unit for unit, per_second in PER_SECOND.items() if _FIRST <= number // per_second < _LAST), None)
