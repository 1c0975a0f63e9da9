"""The standing line of a real table, and the files that each commit on it added. Reads metadata only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakebound.errors import BadEntryError
from lakebound.inspection.validation.line import Line, LineCommit
from lakebound.ledger.entry import Entry, count
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.storage.requests import each
from lakebound.tables.erasing import COPY_PREFIX
from lakebound.tables.history import History, TableCommit, read_history
from lakebound.tables.places import Places


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


class LineReader:
    """Reads the standing line of one table, as of one reading of its history."""

    def __init__(self, table: str, history: History) -> None:
        self._table = table
        self._history = history

    def line(self, is_validated: Callable[[int], bool]) -> Line:
        """Return the standing line down to the first commit for which ``is_validated``, or as far as it is kept.

        Args:
            is_validated: Says of the position of a commit whether reading may end there.
        """
        steps: list[LineCommit] = []
        for commit in _standing(self._history):
            steps.append(_step(commit))
            if is_validated(commit.number):
                break
        return Line(self._table, tuple(steps))

    def files(self, steps: Iterable[LineCommit]) -> list[LandedFile]:
        """Return the files with rows that the commits brought, of those commits that can still be read.

        Beside its new rows a redo adds copies of files; what these hold was validated when it landed.

        Args:
            steps: Commits of the line.
        """
        return [
            LandedFile(file.path, step.version, step.committed_at_ms, file.rows, file.partition)
            for step in steps
            for file in self._history.added(step.version)
            if step.kind != "redo" or not file.path.name.startswith(COPY_PREFIX)
        ]


def line_reader(spec: TableSpec, places: Places) -> LineReader | None:
    """Return the reader of a table; None where there is no such table."""
    history = read_history(spec, places)
    return None if history is None else LineReader(spec.id, history)


def _standing(history: History) -> Iterator[TableCommit]:
    """Yield the current commit and what it stands on; where a parent has expired, what was current before goes on."""
    at = history.current
    while at is not None:
        start, last = at, None
        for commit in history.ancestry(start):
            yield commit
            last = commit
        at = None if last is None or last.parent is None else _before(history, last)


def _before(history: History, commit: TableCommit) -> str | None:
    """Return the newest version that was current and is older than a commit; None where the format logs none."""
    once_current = {version for _, version in history.current_since}
    if not once_current:
        return None
    return next((one.version for one in history.commits() if one.number < commit.number and one.version in once_current), None)


def _step(commit: TableCommit) -> LineCommit:
    entry = _entry(commit)
    return LineCommit(
        position=commit.number,
        version=commit.version,
        committed_at_ms=commit.committed_at_ms,
        parent=commit.parent_number,
        kind=entry.kind if entry is not None else None,
        rows=entry.rows if entry is not None else 0,
        offsets=count(entry.coverage) if entry is not None else None,
        # A carried entry may still name the range of the one that it carries on.
        own_offsets=count(entry.range) if entry is not None and entry.kind != "carry" else 0,
    )


def _entry(commit: TableCommit) -> Entry | None:
    """Return a commit's entry; None of a bad one: where a later entry mended the ledger, what landed before it counts."""
    try:
        return commit.entry
    except BadEntryError:
        return None
