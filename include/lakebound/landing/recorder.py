"""What is written down beside a stream, again and again. Whatever happens here, the stream goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from lakebound.errors import LeaseLostError

log = logging.getLogger(__name__)


class Recorder:
    """Lets one thread write at a time. What fails is said once, and tried again by the next tick."""

    def __init__(self, what: str) -> None:
        """Write nothing yet.

        Args:
            what: What is written, as the log says it.
        """
        self._what = what
        self._writing = threading.Lock()
        self._is_closed = self._is_failing = False

    def close(self) -> None:
        """Write nothing any more: another application has the lease."""
        self._is_closed = True

    def _guarded(self, write: Callable[[], None]) -> bool:
        """Write unless another thread does, or nothing is written any more; return False where it has failed."""
        if self._is_closed or not self._writing.acquire(timeout=1.0):
            return True
        try:
            write()
            self._is_failing = False
        except LeaseLostError:
            self.close()
        except Exception as exc:
            if not self._is_failing:
                log.warning("%s cannot be written; this is tried again: %s", self._what, self._shown(exc))
            self._is_failing = True
            return False
        finally:
            self._writing.release()
        return True

    def _shown(self, error: Exception) -> str:
        return f"{type(error).__name__}: {error}"
