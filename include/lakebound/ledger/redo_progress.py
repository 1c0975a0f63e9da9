"""How much of the newest redo is still to be done in a table, as every entry since says it. Pure."""

from __future__ import annotations

from pydantic import Field

from lakebound.frozen import FrozenRecord


class RedoProgress(FrozenRecord):
    """The newest redo that stands, or the undoing of one.

    Attributes:
        plan: Hash of its plan; empty where no redo stands.
        left: How many offsets it has still to make anew in this table.
        undoes: Hash of the plan of the redo that it undoes; None where it is a redo itself.
        at_ms: When that was said, in epoch milliseconds; 0 where nothing is left.
    """

    plan: str = ""
    left: int = Field(default=0, ge=0)
    undoes: str | None = None
    at_ms: int = 0

    @property
    def is_undoing(self) -> bool:
        """Whether a redo is undone in part: the old rows of some offsets are back, and those of others are not."""
        return self.left > 0 and self.undoes is not None


NO_REDO = RedoProgress()
