"""What is landed, as the board shows it: of all targets of an application, whichever query commits to them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from lakebound.control.progress import SourceProgress, TableProgress
from lakebound.ledger.entry import has_gaps, high_water_marks
from lakebound.ledger.marks import NextOffsets, lowest
from lakebound_spark.batch.targets import Target
from lakebound_spark.stream.signs import ProgressBoard

T = TypeVar("T", int, float)


class TargetsReport:
    """Marks and commits by query; the board has the lowest mark, and the last commit of the query that is behind.

    So a query that has stopped landing is seen although the other one goes on.
    """

    def __init__(self, board: ProgressBoard, targets: Mapping[str, Sequence[Target]]) -> None:
        """Note what the targets hold; the board is not changed yet.

        Args:
            board: Of the application.
            targets: Those to which each query commits, by the query's name.
        """
        self._board = board
        self._lock = threading.Lock()
        self._marks = {query: marks_of(own) for query, own in targets.items()}
        self._has_gaps = {query: any(has_gaps(target.coverage) for target in own) for query, own in targets.items()}
        self._tables: dict[str, dict[str, TableProgress]] = {query: {} for query in targets}
        self._newest_ms: dict[str, int | None] = dict.fromkeys(targets)
        self._source = _newest_source(target for own in targets.values() for target in own)

    def begin(self, query: str, start: NextOffsets) -> None:
        """Put the place on the board from which a query reads.

        Who watches from outside knows the marks before the first commit, and so sees it when that one never comes.
        """
        with self._lock:
            self._marks[query] = start
            self._show()

    def put(self, query: str, targets: Sequence[Target], newest_record_ms: int | None = None) -> None:
        """Put marks, versions, commits and rows of a query's targets on the board; called by the query's own thread.

        Args:
            query: Its name.
            targets: Those to which it commits.
            newest_record_ms: Kafka's timestamp of the newest record that was landed now; None without any.
        """
        marks = marks_of(targets)
        tables = {one.id: _table_progress(one, one.last_commit_at) for one in targets if one.last_commit_at is not None}
        with self._lock:
            self._has_gaps[query] = any(has_gaps(target.coverage) for target in targets)
            self._marks[query], self._tables[query] = marks, tables
            self._newest_ms[query] = max(self._newest_ms[query] or 0, newest_record_ms or 0) or None
            self._show()

    def _show(self) -> None:
        shown: dict[str, object] = {
            "high_water_marks": lowest(self._marks.values()),
            "newest_record_ms": _least(self._newest_ms.values()),
            "has_gaps": any(self._has_gaps.values()),
            "source": self._source,
        }
        tables = {name: one for own in self._tables.values() for name, one in own.items()}
        if tables:
            newest = (max((one.committed_at for one in own.values()), default=None) for own in self._tables.values())
            shown |= {"tables": tables, "last_commit_at": _least(newest)}
        self._board.change(**shown)


def _newest_source(targets: Iterable[Target]) -> SourceProgress | None:
    """Return the code with which the targets were opened, and since when it makes rows."""
    entries = (target.view.entry for target in targets)
    newest = [entry.sources[-1] for entry in entries if entry is not None and entry.sources]
    if not newest:
        return None
    first = min(newest, key=lambda one: one.since_ms)
    return SourceProgress(hash=first.hash, revision=first.revision, since=first.since_ms / 1000)


def _table_progress(target: Target, committed_at: float) -> TableProgress:
    others = target.view.entry.foreign_changes if target.view.entry is not None else ()
    return TableProgress(
        version=target.view.version,
        committed_at=committed_at,
        commits=target.commits,
        rows=target.rows,
        changed_by_others=len(others),
        newest_change=str(others[-1]) if others else None,
    )


def _least(numbers: Iterable[T | None]) -> T | None:
    """Return the least; None where one is not known."""
    known = list(numbers)
    return None if None in known else min(one for one in known if one is not None)


def marks_of(targets: Sequence[Target]) -> NextOffsets:
    """Return up to where all of the targets have landed."""
    return lowest(high_water_marks(target.coverage) for target in targets)
