"""A Delta table's standing line from its log's JSON commits, and the files that they added."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from lakebound.inspection.validation.landed_files import LandedFile, file_named, step_of
from lakebound.inspection.validation.line import Line, LineCommit
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.delta.checkpoints import list_log
from lakebound.tables.delta.log import DeltaCommit, commit_file, commit_lines, commits
from lakebound.tables.places import Places


class DeltaLine:
    """Reads one Delta table."""

    def __init__(self, spec: TableSpec, places: Places) -> None:
        self._table = spec.id
        self._folder = places.folder(spec)

    def line(self, is_validated: Callable[[int], bool]) -> Line:
        """Return the standing line; a commit that restored an older version is followed by that version."""
        steps: list[LineCommit] = []
        for commit in self._walk(_newest(self._folder)):
            steps.append(_step(commit))
            if is_validated(commit.version):
                break
        return Line(self._table, tuple(steps))

    def files(self, steps: Iterable[LineCommit]) -> list[LandedFile]:
        """Return the files of the commits' ``add`` actions that change data."""
        return [file for step in steps for file in self._added(step)]

    def _walk(self, newest: int | None) -> Iterator[DeltaCommit]:
        at = newest
        while at is not None:
            start, at = at, None
            # A ledger that was mended by a later entry keeps the bad one in its log, and what landed before it counts.
            for commit in commits(self._folder, start, pass_bad_entries=True):
                yield commit
                parent = _parent(commit)
                if parent is not None and parent != commit.version - 1:
                    at = parent
                    break

    def _added(self, step: LineCommit) -> Iterator[LandedFile]:
        try:
            text = commit_file(self._folder, step.position).read().decode()
        except FileNotFoundError:
            return
        for line in commit_lines(text):
            add = json.loads(line).get("add") if line.startswith('{"add"') else None
            if add is not None and add.get("dataChange", True):
                yield LandedFile(
                    path=file_named(self._folder, str(add["path"])),
                    version=step.version,
                    committed_at_ms=step.committed_at_ms,
                    rows=_rows(add.get("stats")),
                    partition=dict(add.get("partitionValues") or {}),
                )


def _newest(folder: Location) -> int | None:
    """Return the newest version of the log; None where there is no table."""
    try:
        files = list_log(folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return max((file.version for file in files if file.is_commit), default=None)


def _parent(commit: DeltaCommit) -> int | None:
    if commit.restored_to is not None:
        return commit.restored_to
    return commit.version - 1 if commit.version else None


def _step(commit: DeltaCommit) -> LineCommit:
    return step_of(
        commit.entry,
        position=commit.version,
        version=str(commit.version),
        committed_at_ms=commit.timestamp_ms,
        parent=_parent(commit),
    )


def _rows(statistics: object) -> int | None:
    if not isinstance(statistics, str):
        return None
    found = json.loads(statistics).get("numRecords")
    return int(found) if found is not None else None
