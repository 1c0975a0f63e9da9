"""Bounds of what a file of the state may say: a time that is one, a count and an offset that 64 bits hold. Pure.

A number beyond them was not written by Lakebound. It is refused where the file is read, so that nothing that counts with it, or
shows it, need expect it.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

LAST_MOMENT = 253_402_300_799.0
"""The last second of the year 9999, in epoch seconds: calendars end there."""
MOST_COUNT = 2**63 - 1

Moment = Annotated[float, Field(ge=0, le=LAST_MOMENT, allow_inf_nan=False)]
"""Epoch seconds, or a number of seconds."""
MomentMs = Annotated[int, Field(ge=0, le=int(LAST_MOMENT) * 1000)]
"""Epoch milliseconds."""
Count = Annotated[int, Field(ge=0, le=MOST_COUNT)]
"""How many there are of something, how large it is, or an offset."""
Int64 = Annotated[int, Field(ge=-MOST_COUNT - 1, le=MOST_COUNT)]
"""What somebody else says, such as the timestamp of a record."""


def counted(number: int) -> int:
    """Return a sum as a count: at most what 64 bits hold."""
    return min(number, MOST_COUNT)


def within_calendar(seconds: float) -> float:
    """Return the nearest moment that a calendar knows, in epoch seconds; what is no number is the first one."""
    return 0.0 if math.isnan(seconds) else min(max(seconds, 0.0), LAST_MOMENT)


def seconds_summed(*seconds: float) -> float:
    """Return the sum as a file may hold it: what is no number, or below zero, adds nothing."""
    return min(LAST_MOMENT, sum(one for one in seconds if one > 0))
