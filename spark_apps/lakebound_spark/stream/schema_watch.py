"""The thread that asks the registry for newer versions: tables follow before a record comes, and a reused id is noticed."""

from __future__ import annotations

import logging
import threading
import time

from lakebound.control.folder import ControlFolder
from lakebound.control.schemas_in_use import SchemasInUse, SchemasRecord, write_schemas_in_use
from lakebound.landing.read_schemas import SchemaBook
from lakebound.redaction import redacted

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0
_TICK_SECONDS = 1.0
_ASK_AGAIN_SECONDS = 3.0
"""How long to wait while partitions wait for schemas that the registry was asked for in vain."""


class SchemaWatch:
    """Looks at the subjects of a pipeline now and then, and notes what is in use; a registry that is away changes nothing."""

    def __init__(self, book: SchemaBook, control: ControlFolder, look_seconds: float = LOOK_SECONDS) -> None:
        """Look at nothing yet.

        Args:
            book: Has the schemas in use.
            control: State folder of the pipeline.
            look_seconds: How long to wait between two looks.
        """
        self._book, self._control, self._look_seconds = book, control, look_seconds
        self._noted: tuple[SchemasInUse, ...] = ()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="schemas", daemon=True)

    def start(self) -> None:
        """Begin; without a registry there is nothing to do."""
        if self._book.has_registry:
            self._thread.start()

    def end(self) -> None:
        """Tell the thread to stop; it may still be waiting for the registry, and is a daemon."""
        self._ended.set()

    def _loop(self) -> None:
        while True:
            settled = self._book.settled
            # One after the other, whatever comes of each: of two registries, one may be away.
            for do in (self._ask_again, self._book.look, self._note):
                try:
                    do()
                except Exception as exc:
                    log.warning("the versions of the schemas are not known: %s", redacted(exc))
            if self._wait(settled):
                return

    def _wait(self, settled: int) -> bool:
        """Wait until it is time for the next look; return whether the end was told.

        Args:
            settled: How often tables had been settled before the last look: after another time, something else is in use.
        """
        looked_at = time.monotonic()
        while self._book.settled == settled:
            most = self._look_seconds if self._book.away is None else min(self._look_seconds, _ASK_AGAIN_SECONDS)
            left = looked_at + most - time.monotonic()
            if left <= 0:
                return False
            if self._ended.wait(min(left, _TICK_SECONDS)):
                return True
        return False

    def _ask_again(self) -> None:
        if self._book.away is not None:
            self._book.ask()

    def _note(self) -> None:
        parts = self._book.in_use()
        if parts and parts != self._noted:
            write_schemas_in_use(self._control, SchemasRecord(at=time.time(), parts=parts))
            self._noted = parts
