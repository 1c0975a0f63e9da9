"""The periods that a chart can show, and what of the rollups each is made of. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lakebound.control.rollups import HOUR, MINUTE, TEN_SECONDS, Resolution


@dataclass(frozen=True)
class Period:
    """A period that ends now.

    Attributes:
        name: In addresses.
        title: For people.
        seconds: Its length.
        source: The rollups that it is made of.
        step_seconds: Between two points of a chart; a multiple of the source's.
    """

    name: str
    title: str
    seconds: int
    source: Resolution
    step_seconds: int

    @property
    def step(self) -> Resolution:
        """What one point sums; it is never kept in a file."""
        return Resolution(self.name, self.step_seconds, 0, 0)

    def times(self, now: float) -> tuple[int, ...]:
        """Return when each point of a chart begins, in epoch seconds; at most 400."""
        first, last = self.step.start_of(now - self.seconds), self.step.start_of(now)
        return tuple(range(first, last + 1, self.step_seconds))


PERIODS = (
    Period("15m", "15 minutes", 900, TEN_SECONDS, 10),
    Period("1h", "1 hour", 3600, TEN_SECONDS, 10),
    Period("6h", "6 hours", 6 * 3600, MINUTE, 60),
    Period("24h", "24 hours", 86_400, MINUTE, 240),
    Period("7d", "7 days", 7 * 86_400, HOUR, 3600),
    Period("30d", "30 days", 30 * 86_400, HOUR, 7200),
)
DEFAULT_PERIOD = "1h"


def period_named(name: str) -> Period | None:
    """Return the period of this name; None where there is none."""
    return next((period for period in PERIODS if period.name == name), None)
