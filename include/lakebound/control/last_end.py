"""How a pipeline's application before the present one ended, from what it left behind: clean, barren, or in the middle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lakebound.control.folder import ControlFolder
from lakebound.control.lease import Lease, read_lease
from lakebound.control.progress import Outcome, Progress, read_outcome, read_progress
from lakebound.control.supervision import LANDED_LONG_SECONDS

T = TypeVar("T")


@dataclass(frozen=True)
class LastEnd:
    """What the application left behind that held the lease last.

    Attributes:
        lease: As it stands.
        outcome: Its last word; None when it died without one.
        progress: Its latest; None when there is none, or when it is another application's.
        landed_epoch: Epoch of the newest commit with rows in any table, as far as the tables were asked.
    """

    lease: Lease
    outcome: Outcome | None = None
    progress: Progress | None = None
    landed_epoch: int = 0

    @property
    def app_id(self) -> str:
        """The application."""
        return self.lease.app_id

    @property
    def is_unclean(self) -> bool:
        """Whether it failed, or died without an outcome and without giving its lease back."""
        if self.outcome is not None:
            return self.outcome.verdict == "failed"
        return not self.lease.released

    @property
    def landed(self) -> bool:
        """Whether it committed any row. Progress is written once a second: only the tables know of a commit just before."""
        if self.outcome is not None and self.outcome.stuck is not None:
            return False
        if self.landed_epoch >= self.lease.epoch:
            return True
        if self.outcome is not None and self.outcome.commits > 0:
            return True
        return self.progress is not None and any(table.rows > 0 for table in self.progress.tables.values())

    @property
    def lived_seconds(self) -> float:
        """From its start to its last sign of life."""
        ended_at = self.outcome.ended_at if self.outcome is not None else self.lease.heartbeat_at
        return max(0.0, ended_at - self.lease.acquired_at)

    @property
    def is_outage(self) -> bool:
        """Whether an outage ended it before it had landed a row: starting again is right, however often that comes."""
        return self.outcome is not None and self.outcome.is_outage and not self.landed

    @property
    def is_barren(self) -> bool:
        """Whether it ended uncleanly, soon, and without having landed a row: three of these in a row are a crash loop.

        One that lived long had nothing to land, and one that an outage ended could not: starting again is right.
        """
        return self.is_unclean and not self.is_outage and not self.landed and self.lived_seconds < LANDED_LONG_SECONDS

    @property
    def described(self) -> str:
        """How it ended, in words."""
        if self.outcome is not None:
            return f"{self.app_id} ended: {self.outcome.verdict}: {self.outcome.reason}"
        if self.lease.released:
            return f"{self.app_id} ended and gave its lease back"
        return f"{self.app_id} died without an outcome (it was killed, or its machine went down)"


def read_last_end(control: ControlFolder) -> LastEnd | None:
    """Return how the holder of the lease ended, or None where there never was one. Only sense when it lives no longer.

    What cannot be read is taken as missing.
    """
    lease = _try(lambda: read_lease(control))
    if lease is None:
        return None
    progress = _try(lambda: read_progress(control))
    own = progress if progress is not None and progress.app_id == lease.app_id else None
    return LastEnd(lease, _try(lambda: read_outcome(control, lease.app_id)), own)


def _try(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (OSError, ValueError):
        return None
