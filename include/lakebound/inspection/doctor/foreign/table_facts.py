"""What a table's own history says about the streaming queries that wrote it. Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StreamCommit:
    """One commit of a native streaming sink.

    Attributes:
        order: Grows from commit to commit: Delta's version, or the snapshot's place in the ancestry.
        version: Delta's version or Iceberg's snapshot id.
        rows: Rows that it added; None where history does not say.
    """

    query_id: str
    epoch: int
    order: int
    version: str
    committed_at_ms: int
    rows: int | None = None


@dataclass(frozen=True)
class Removal:
    """A commit that removed rows of streams: a restore to an older version, a truncation, a replacement.

    Attributes:
        kept_order: For a restore, the version that it went back to: what was committed up to it is still there.
    """

    operation: str
    order: int
    version: str
    committed_at_ms: int
    kept_order: int = -1


@dataclass(frozen=True)
class ForeignHistory:
    """What was found in a table, as far back as its history is kept.

    Attributes:
        table: As the user wrote it, format:location.
        exists: Whether there is a table.
        problem: Why it could not be read.
        epochs: V per query id: the newest epoch that the table says the query committed.
        commits: Of native streaming sinks, newest first.
        removals: Newest first.
        is_complete: Whether history reaches back to the first commit, so that a query which is not in it never wrote.
    """

    table: str
    exists: bool = True
    problem: str | None = None
    epochs: Mapping[str, int] = field(default_factory=dict)
    commits: tuple[StreamCommit, ...] = ()
    removals: tuple[Removal, ...] = ()
    is_complete: bool = True

    def of(self, query_id: str | None) -> tuple[StreamCommit, ...]:
        """The commits of one query, newest first."""
        return tuple(commit for commit in self.commits if commit.query_id == query_id)
