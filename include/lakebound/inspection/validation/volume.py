"""How many rows a range of commits usually has, from the ranges before it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lakebound.inspection.validation.expectations import UsualVolume
from lakebound.inspection.validation.verdict import ValidatedRange

_MS_PER_MINUTE = 60_000


@dataclass(frozen=True)
class UsualRows:
    """What a range of some minutes should have: whole rows, both bounds included.

    Attributes:
        min_rows: At least.
        max_rows: At most.
        mean_per_minute: Of the past, weighted by time.
        deviation_per_minute: Standard deviation of the past ranges' rates, weighted by time.
        ranges: How many ranges that is.
    """

    min_rows: int
    max_rows: int
    mean_per_minute: float
    deviation_per_minute: float
    ranges: int


def usual_rows(expected: UsualVolume, past: Sequence[ValidatedRange], from_ms: int, to_ms: int) -> UsualRows | None:
    """Return the bounds for the range of commits between two times, or None where the past is too short to tell.

    Args:
        expected: How far from the mean is usual.
        past: Ranges of the same table; those that ended before ``from_ms`` and within ``past_seconds`` count.
        from_ms: When the commit before the range was made.
        to_ms: When its last commit was made.
    """
    since_ms = from_ms - expected.past_seconds * 1000
    known = [one for one in past if since_ms <= one.to_ms <= from_ms and one.to_ms > one.from_ms > 0]
    if len(known) < expected.min_ranges or to_ms <= from_ms:
        return None
    minutes = [(one.to_ms - one.from_ms) / _MS_PER_MINUTE for one in known]
    mean = sum(one.rows for one in known) / sum(minutes)
    rates = [one.rows / length for one, length in zip(known, minutes, strict=True)]
    squares = sum(length * (rate - mean) ** 2 for rate, length in zip(rates, minutes, strict=True))
    deviation = math.sqrt(squares / sum(minutes))
    length = (to_ms - from_ms) / _MS_PER_MINUTE
    reach = expected.deviations * deviation
    return UsualRows(
        min_rows=max(0, math.ceil((mean - reach) * length - 1e-9)),
        max_rows=math.floor((mean + reach) * length + 1e-9),
        mean_per_minute=mean,
        deviation_per_minute=deviation,
        ranges=len(known),
    )
