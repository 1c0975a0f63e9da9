"""The thread that asks the registry for newer versions: tables follow before a record comes, and a reused id is noticed."""

from __future__ import annotations

import logging
import threading

from lakebound.landing.read_schemas import SchemaBook
from lakebound.redaction import redacted

log = logging.getLogger(__name__)

LOOK_SECONDS = 30.0


class SchemaWatch:
    """Looks at the subjects of a pipeline now and then; a registry that is away changes nothing."""

    def __init__(self, book: SchemaBook, look_seconds: float = LOOK_SECONDS) -> None:
        """Look at nothing yet.

        Args:
            book: Has the schemas in use.
            look_seconds: How long to wait between two looks.
        """
        self._book, self._look_seconds = book, look_seconds
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
        while not self._ended.wait(self._look_seconds):
            try:
                self._book.look()
            except Exception as exc:
                log.warning("the versions of the schemas are not known: %s", redacted(exc))
