"""The standing line of a real table, and the files that each commit on it added. Reads metadata only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Protocol
from urllib.parse import unquote

from lakebound.inspection.validation.line import Line, LineCommit
from lakebound.ledger.entry import Entry, count
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location, location_of
from lakebound.storage.requests import each
from lakebound.tables.places import Places
from lakebound.tables.size import may_exist

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:/")


@dataclass(frozen=True)
class LandedFile:
    """A data file that a commit added.

    Attributes:
        path: Where it is.
        version: The commit's.
        committed_at_ms: The commit's.
        rows: How many it has; None where its commit does not say.
        partition: Delta: value per partition column, which the file itself does not hold.
    """

    path: Location
    version: str
    committed_at_ms: int
    rows: int | None = None
    partition: Mapping[str, str | None] = field(default_factory=dict)


def files_there(files: Sequence[LandedFile]) -> list[LandedFile]:
    """Return those of the files that are still there; a store is asked for all of them at once."""
    if all(file.path.is_local for file in files):
        return [file for file in files if file.path.exists()]
    there = each(lambda file: file.path.exists(), files)
    return [file for file, is_there in zip(files, there, strict=True) if is_there]


def file_named(folder: Location, text: str) -> Location:
    """Return the file that a Delta log names: by a URI, below the table's folder where it has no scheme."""
    path = unquote(text)
    return location_of(path, folder.store) if _SCHEME.match(path) else folder / path


class LineReader(Protocol):
    """Reads one format."""

    def line(self, is_validated: Callable[[int], bool]) -> Line:
        """Return the standing line down to the first commit for which ``is_validated``, or as far as it is kept.

        Args:
            is_validated: Says of the position of a commit whether reading may end there.
        """

    def files(self, steps: Iterable[LineCommit]) -> list[LandedFile]:
        """Return the files that the commits added, of those commits that can still be read.

        Args:
            steps: Commits of the line.
        """


_READERS = {
    "delta": "lakebound.inspection.validation.delta_line:DeltaLine",
    "iceberg": "lakebound.inspection.validation.iceberg_line:IcebergLine",
}


def line_reader(spec: TableSpec, places: Places) -> LineReader | None:
    """Return the reader of a table; None where there is no such table."""
    if not may_exist(spec, places):
        return None
    module, _, name = _READERS[spec.format].partition(":")
    reader: LineReader = getattr(import_module(module), name)(spec, places)
    return reader


def step_of(entry: Entry | None, *, position: int, version: str, committed_at_ms: int, parent: int | None) -> LineCommit:
    """Return a commit as a step of the line.

    Args:
        entry: Ledger entry in this commit; None when the commit carries none.
        position: Place among all commits of the table: Delta's version or Iceberg's sequence number.
        version: Delta version or Iceberg snapshot id.
        committed_at_ms: When the commit was made, in epoch milliseconds.
        parent: Position of the commit before it; None for the first one, or when that one is no longer kept.
    """
    return LineCommit(
        position=position,
        version=version,
        committed_at_ms=committed_at_ms,
        parent=parent,
        kind=entry.kind if entry is not None else None,
        rows=entry.rows if entry is not None else 0,
        offsets=count(entry.coverage) if entry is not None else None,
        # A carried entry may still name the range of the one that it carries on.
        own_offsets=count(entry.range) if entry is not None and entry.kind != "carry" else 0,
    )
