"""Keeps a few of the records that go to quarantine, and writes them down every ten seconds. The stream never waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

from lakebound.control.folder import ControlFolder
from lakebound.control.quarantine_samples import (
    QuarantineSample,
    Samples,
    newest_samples,
    read_samples,
    remove_samples,
    write_samples,
)
from lakebound.landing.recorder import Recorder

_EVERY_SECONDS = 10.0
_REMOVED_EVERY_SECONDS = 60.0
"""Where no samples are wanted: whoever had the lease before may have written them late."""


def _nobody_else() -> None:
    """Stand for the lease until there is one."""


class SampleRecorder(Recorder):
    """Samples of one application. ``add`` is for the stream's thread; ``tick``, ``end`` and ``close`` are for others."""

    def __init__(
        self,
        control: ControlFolder,
        per_reason: int,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep nothing yet.

        Args:
            control: State folder of the pipeline.
            per_reason: How many samples of each reason are kept; with 0, the file of an earlier setting is removed.
            clock: Returns the time, in epoch seconds.
            monotonic: Returns seconds, of a clock that nobody sets.
        """
        super().__init__("samples of the quarantine")
        self._control = control
        self._per_reason = per_reason
        self._clock = clock
        self._monotonic = monotonic
        self._check_lease: Callable[[], None] = _nobody_else
        self._noting = threading.Lock()
        self._samples: Samples = ()
        self._written_at: float | None = None
        self._has_begun = self._has_more = False

    def guard(self, check_lease: Callable[[], None]) -> None:
        """Ask for the lease before each writing.

        Args:
            check_lease: Raises LeaseLostError once another application writes for the pipeline.
        """
        self._check_lease = check_lease

    def add(self, samples: Iterable[QuarantineSample]) -> None:
        """Note samples of a batch."""
        added = tuple(samples)
        if not added or not self._per_reason:
            return
        with self._noting:
            self._samples = newest_samples((*self._samples, *added), self._per_reason, self._clock())
            self._has_more = True

    def tick(self) -> None:
        """Write what is new, every ten seconds, or remove what nobody wants, each minute; called about once a second."""
        every = _EVERY_SECONDS if self._per_reason else _REMOVED_EVERY_SECONDS
        is_due = self._written_at is None or self._monotonic() - self._written_at >= every
        if not self._has_begun or (is_due and (self._has_more or not self._per_reason)):
            self._write()

    def end(self) -> None:
        """Write what is new, or remove what nobody wants, and nothing any more afterwards."""
        if self._has_more or not self._per_reason:
            self._write()
        self.close()

    def _write(self) -> None:
        if not self._guarded(self._write_or_remove):
            self._has_more = True

    def _shown(self, error: Exception) -> str:
        """Return no text of an error: that of a file which cannot be read may quote it."""
        return type(error).__name__

    def _write_or_remove(self) -> None:
        self._check_lease()
        if not self._per_reason:
            remove_samples(self._control)
            self._has_begun, self._written_at = True, self._monotonic()
            return
        if not self._has_begun:
            self._begin()
        with self._noting:
            self._samples = newest_samples(self._samples, self._per_reason, self._clock())
            samples, has_more, self._has_more = self._samples, self._has_more, False
        if has_more:
            self._written_at = self._monotonic()
            write_samples(self._control, samples)

    def _begin(self) -> None:
        """Go on with the samples of applications before."""
        try:
            self.add(read_samples(self._control, self._clock()))
            # What is old, or was written while the clock was ahead, leaves the file, too.
            self._has_more = self._has_more or self._control.quarantine_samples.exists()
        except ValueError:
            remove_samples(self._control)
        self._has_begun = True
