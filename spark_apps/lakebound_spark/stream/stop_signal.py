"""The request that an application ends; the first request gives the reason."""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass

from lakebound.control.progress import EndVerdict
from lakebound.errors import LakeboundError


@dataclass(frozen=True)
class StopRequest:
    """Why the application is to end; ``error`` is what it refuses to go on for."""

    verdict: EndVerdict
    reason: str
    error: Exception | None = None


class StopSignal:
    """Set once; the first reason counts."""

    def __init__(self) -> None:
        self._event = threading.Event()
        # The handler of a signal may run while this thread is within ``set``.
        self._lock = threading.RLock()
        self.request: StopRequest | None = None
        self.signalled = threading.Event()
        """Set once a signal was received, whoever asked before it: nothing is waited for any more."""

    def set(self, verdict: EndVerdict, reason: str, error: Exception | None = None) -> None:
        """Ask the application to end after the batch in flight.

        Args:
            verdict: How it then ends.
            reason: Why, in words for a person.
            error: What it refuses to go on for; None where it ends for another reason.
        """
        with self._lock:
            self.request = self.request or StopRequest(verdict, reason, error)
        self._event.set()

    def refuse(self, error: LakeboundError) -> None:
        """Ask it to end as a refusal, after the batch in flight: what was read stays read."""
        self.set("refused", str(error), error)

    def on_signal(self, number: signal.Signals) -> None:
        """Ask it for a signal that was received."""
        self.signalled.set()
        self.set("stopped", f"signal {number.name}")

    def is_set(self) -> bool:
        """Whether the application is to end."""
        return self._event.is_set()

    def wait(self, seconds: float) -> bool:
        """Wait for the signal; return whether it is set."""
        return self._event.wait(seconds)
