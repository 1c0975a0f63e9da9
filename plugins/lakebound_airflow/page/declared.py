"""The pipelines that YAML files declare, read again only after one of the files has changed. No table is opened."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from lakebound.control.folder import ControlFolder
from lakebound.settings import Settings
from lakebound.spec.load import LoadedPipelines, load_pipelines

Signature = tuple[tuple[str, int, int], ...]
"""Name, time of change in nanoseconds, and size in bytes of each file."""


class DeclaredPipelines:
    """What the folder declares, as of the last change of a file."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: tuple[Settings, Signature, LoadedPipelines] | None = None

    def read(self, settings: Settings) -> LoadedPipelines:
        """Return what the files declare.

        Where two files name one table, both count as declared if they ran before: whose the table is, its ledger says, and
        tables are not opened here. Both are among the mistakes.
        """
        with self._lock:  # of two requests at once, one reads
            now = _signature(settings.pipelines)
            if self._seen is None or self._seen[:2] != (settings, now):
                self._seen = (settings, now, load_pipelines(settings))
            loaded = self._seen[2]
        if not loaded.contested:
            return loaded
        ran = {name: one.spec for name, one in loaded.contested.items() if ControlFolder(settings.home, name).progress.exists()}
        return replace(loaded, specs=dict(sorted({**loaded.specs, **ran}.items())))


def _signature(folder: Path) -> Signature:
    try:
        files = sorted(folder.iterdir())
    except OSError:
        return ()
    found = []
    for file in files:
        try:
            said = file.stat()
        except OSError:
            continue
        found.append((file.name, said.st_mtime_ns, said.st_size))
    return tuple(found)
