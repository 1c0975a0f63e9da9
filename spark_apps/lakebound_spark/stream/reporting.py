"""What a stream puts on the board of the targets that it commits to."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.control.progress import TableProgress
from lakebound_spark.batch.targets import Target
from lakebound_spark.stream.signs import ProgressBoard


def report_targets(board: ProgressBoard, targets: Sequence[Target]) -> None:
    """Put versions, commits and rows of the targets on the board, of those that have had a commit with rows.

    Args:
        board: Of the application.
        targets: The targets.
    """
    tables = {
        one.id: TableProgress(version=one.view.version, committed_at=one.last_commit_at, commits=one.commits, rows=one.rows)
        for one in targets
        if one.last_commit_at is not None
    }
    if tables:
        board.change(tables=tables, last_commit_at=max(one.committed_at for one in tables.values()))
