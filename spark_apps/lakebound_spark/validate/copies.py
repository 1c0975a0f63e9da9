"""Copies of data files that lie in an object store: this process and its Spark, which are one machine, read them in a folder.

Frames read their files when they are asked, so the copies stay until the next range.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lakebound.inspection.validation.landed_files import LandedFile
from lakebound.storage.location import Location
from lakebound.storage.requests import each


class Copies:
    """The copies of one run."""

    def __init__(self) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        self._made: dict[str, Location] = {}

    def here(self, files: Sequence[LandedFile]) -> list[LandedFile]:
        """Return the files, each on this machine; those of a store are copied once.

        Raises:
            FileNotFoundError: One is not there any more.
        """
        wanted = {file.path.address: file.path for file in files if not file.path.is_local}
        self._copy([place for address, place in wanted.items() if address not in self._made])
        return [replace(file, path=self._made.get(file.path.address, file.path)) for file in files]

    def drop(self) -> None:
        """Delete the copies."""
        self._made.clear()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _copy(self, places: Sequence[Location]) -> None:
        if not places:
            return
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="lakebound-validate-", ignore_cleanup_errors=True)
        # The name stays: by it, rows know the commit of their file. Those of two tables may be the same.
        targets = [Path(self._folder.name, str(len(self._made) + number), place.name) for number, place in enumerate(places)]
        each(lambda one: _copy(*one), zip(places, targets, strict=True))
        self._made |= {place.address: Location(str(to)) for place, to in zip(places, targets, strict=True)}


def _copy(source: Location, target: Path) -> None:
    target.parent.mkdir()
    with source.open() as read, target.open("wb") as written:
        shutil.copyfileobj(read, written)
