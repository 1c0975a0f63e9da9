"""How often an application asks for its state, and asking without waiting for the answer where it is in an object store."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from lakebound.control.folder import ControlFolder
from lakebound.storage.requests import begin

_SHARED_OBEY_SECONDS = 2.0
_SHARED_PROGRESS_SECONDS = 5.0
_RENEWALS_PER_TTL = 3


@dataclass(frozen=True)
class Paces:
    """Seconds between two renewals of the lease, two looks at the desired state, and two writings of progress or of batches.

    None: each time that it is asked, without a thread.
    """

    renew_seconds: float | None = None
    obey_seconds: float | None = None
    progress_seconds: float | None = None
    batches_seconds: float | None = None


def paces(control: ControlFolder, ttl_seconds: float) -> Paces:
    """Return how often an application asks for its state.

    Args:
        control: The pipeline's state.
        ttl_seconds: How long the lease lasts without a renewal.
    """
    if not control.is_shared:
        return Paces()
    renew_seconds = ttl_seconds / _RENEWALS_PER_TTL
    return Paces(
        renew_seconds,
        min(_SHARED_OBEY_SECONDS, renew_seconds),
        min(_SHARED_PROGRESS_SECONDS, renew_seconds),
        _SHARED_PROGRESS_SECONDS,
    )


class Chore:
    """Something that is done every few seconds, by a thread that is not waited for.

    Args:
        do: What is done.
        every_seconds: From one beginning to the next; None: at each ``tick``, which waits for it.
        monotonic: The clock.
        name: What it is, for the log.
    """

    def __init__(
        self,
        do: Callable[[], None],
        every_seconds: float | None,
        monotonic: Callable[[], float] = time.monotonic,
        *,
        name: str = "",
    ) -> None:
        self.name = name
        self._do = do
        self._every = every_seconds
        self._monotonic = monotonic
        self._doing: Future[None] | None = None
        self._began_at: float | None = None

    def tick(self) -> None:
        """Begin it when it is due and not under way; raise the error of the last time."""
        if self._every is None:
            return self._do()
        done, now = self._doing, self._monotonic()
        if done is not None and not done.done():
            return
        self._doing = None
        if self._began_at is None or now - self._began_at >= self._every:
            self._began_at, self._doing = now, begin(self._do)
        if done is not None:
            done.result()
