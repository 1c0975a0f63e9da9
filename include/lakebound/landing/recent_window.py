"""The records that an application dealt with in the last minutes: how many, how many of them were bad, and why.

What is kept is bounded: time is cut into slices, and of each slice only the commonest reasons are kept.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from lakebound.control.progress import RecentRecords

_SLICES = 30
_MOST_REASONS = 20
_MOST_SHOWN = 5


@dataclass
class _Slice:
    """What came within a thirtieth of the window."""

    began_at: float
    newest_at: float
    records: int = 0
    quarantined: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class RecentWindow:
    """Counts the records of the last ``over_seconds``; a slice counts until its newest batch is older than that."""

    def __init__(self, over_seconds: float) -> None:
        self._over_seconds = over_seconds
        self._slices: deque[_Slice] = deque(maxlen=_SLICES + 1)

    def add(self, at: float, records: int, quarantined: int, reasons: Mapping[str, int]) -> None:
        """Count a batch.

        Args:
            at: Epoch seconds at which it was dealt with.
            records: How many it had.
            quarantined: How many of them went to quarantine.
            reasons: The same by reason, as far as that is known.
        """
        if records <= 0:
            return
        if not self._slices or not 0 <= at - self._slices[-1].began_at < self._over_seconds / _SLICES:
            self._slices.append(_Slice(began_at=at, newest_at=at))
        last = self._slices[-1]
        last.newest_at = at
        last.records += records
        last.quarantined += quarantined
        last.reasons = _commonest(last.reasons + Counter(reasons), _MOST_REASONS)

    def counted(self, now: float) -> RecentRecords | None:
        """Return the sums, the commonest reasons first; None where nothing came recently."""
        while self._slices and self._slices[0].newest_at < now - self._over_seconds:
            self._slices.popleft()
        if not self._slices:
            return None
        return RecentRecords(
            over_seconds=self._over_seconds,
            newest_at=self._slices[-1].newest_at,
            records=sum(one.records for one in self._slices),
            quarantined=sum(one.quarantined for one in self._slices),
            reasons=dict(_commonest(sum((one.reasons for one in self._slices), Counter()), _MOST_SHOWN)),
        )


def _commonest(reasons: Counter[str], most: int) -> Counter[str]:
    """Return the first ones; of two that are as common, the same one each time."""
    ordered = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
    return Counter(dict(ordered[:most]))
