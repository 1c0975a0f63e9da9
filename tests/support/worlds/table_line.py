"""A table's history in memory, for tests of what of it is due: commits, rewinds, and history that is no longer kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lakebound.inspection.validation.line import Line, LineCommit
from lakebound.ledger.entry import EntryKind

TABLE = "delta:shop.orders"


@dataclass
class MemoryTable:
    """Commits by position; the current one's ancestors are its standing line."""

    commits: dict[int, LineCommit] = field(default_factory=dict)
    kept_from: int = 0
    current: int = -1

    def __post_init__(self) -> None:
        self._commit("genesis")

    def land(self, rows: int) -> None:
        """Land some rows, each of one offset."""
        self._commit("land", rows)

    def carry(self) -> None:
        """Compact."""
        self._commit("carry", 7)

    def rewind(self, target: int) -> None:
        """Make an older commit's state the current one, as a restore does."""
        self._commit("reset", parent=target)

    def expire_below(self, position: int) -> None:
        """Forget commits."""
        self.kept_from = max(self.kept_from, min(position, self.current))

    def line(self, is_validated: object) -> Line:
        """Return the standing line, as a reader of a real table does."""
        steps = []
        for step in self.ancestors(self.current):
            if step.position < self.kept_from:
                break
            steps.append(step)
            if is_validated(step.position):  # type: ignore[operator]
                break
        return Line(TABLE, tuple(steps))

    def ancestors(self, position: int) -> Iterator[LineCommit]:
        """Yield a commit and all that it stands on, expired or not."""
        at: int | None = position
        while at is not None:
            yield self.commits[at]
            at = self.commits[at].parent

    def _commit(self, kind: EntryKind, rows: int = 0, parent: int | None = None) -> None:
        position = len(self.commits)
        before = parent if parent is not None else self.current if self.current >= 0 else None
        landed = self.commits[before].offsets or 0 if before is not None else 0
        own = rows if kind == "land" else 0
        step = LineCommit(position, str(position), 1_000 * position, before, kind, rows, landed + own, own)
        self.commits[position], self.current = step, position
