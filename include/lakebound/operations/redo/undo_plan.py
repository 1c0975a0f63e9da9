"""What undoing the newest redo would do: which commits it has made, and of which earlier version the old rows are. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import takewhile

from pydantic import Field

from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.ledger.entry import Offsets, add, count, missing
from lakebound.operations.recovery.plan import HASH_CHARACTERS
from lakebound.operations.replay.plan import describe
from lakebound.spec.times import in_utc
from lakebound.tables.history import TableCommit

WORKS = "redo the range with the code that made the old rows, or rewind"
"""Where the old rows are gone."""


class NotUndoableError(LakeboundError):
    """The rows that a redo replaced cannot be brought back."""

    def __init__(self, pipeline: str, reason: str, works: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: no redo can be undone: {reason}. What works: {works}")


class AlreadyUndoneError(NotUndoableError):
    """The newest redo is undone, and all tables say so."""

    def __init__(self, pipeline: str, undoes: str) -> None:
        super().__init__(pipeline, f"the newest, {undoes}, is undone", "`lakebound redo`, with its range")


class Chunk(Frozen):
    """One commit of the redo.

    Attributes:
        redoes: Its offsets.
        read: How many records Kafka gave of them.
    """

    redoes: Offsets
    read: int


class UndoShare(Frozen):
    """What undoing does to one table.

    Attributes:
        table: Its id.
        before: The version before the redo's first commit, which has the old rows.
        chunks: The redo's commits, newest first.
        undone: Offsets whose old rows are back already.
        until_ms: How long that version is kept, in epoch milliseconds.
        is_unfinished: Whether the table says that the redo, or its undoing, is done in part.
        changes_seen: How many commits by others have ever changed rows of the table.
    """

    table: str
    before: str
    chunks: tuple[Chunk, ...]
    undone: Offsets = Field(default_factory=dict)
    until_ms: int = 0
    is_unfinished: bool = False
    changes_seen: int = 0

    @property
    def offsets(self) -> Offsets:
        """All offsets that the redo has made anew."""
        return reduce(add, (one.redoes for one in self.chunks), {})

    @property
    def left(self) -> tuple[Chunk, ...]:
        """The commits whose old rows are not back yet."""
        return tuple(one for one in self.chunks if count(missing(one.redoes, self.undone)))


class UndoPlan(Frozen):
    """What undoing would do, as of now.

    Attributes:
        pipeline: Its name.
        undoes: Hash of the plan of the redo.
        tables: What each table gets back.
    """

    pipeline: str
    undoes: str
    tables: tuple[UndoShare, ...]

    @property
    def hash(self) -> str:
        """Twelve characters of a digest of what comes back, also of what is back already: the same approval goes on."""
        decided = {
            "pipeline": self.pipeline,
            "undoes": self.undoes,
            "tables": {one.table: one.model_dump(mode="json", include={"before", "chunks"}) for one in self.tables},
        }
        text = json.dumps(decided, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARACTERS]

    @property
    def is_done(self) -> bool:
        """Whether all old rows are back, and all tables say so."""
        return not any(one.left or one.is_unfinished for one in self.tables)

    def lines(self) -> Iterator[str]:
        """Yield the plan as a person reads it."""
        yield f"undo the redo {self.undoes} of {self.pipeline}: its rows leave, and the very rows that it replaced come back"
        for share in self.tables:
            yield (
                f"{share.table}: {count(share.offsets):,} offsets, in {len(share.chunks)} commits: {describe(share.offsets)}; "
                f"the old rows are those of version {share.before}, which is kept until {in_utc(share.until_ms)}"
            )
            if count(share.undone):
                yield f"{share.table}: the old rows of {count(share.undone):,} of them are back already"


def commits_of_newest(chain: Sequence[TableCommit]) -> tuple[str, tuple[TableCommit, ...], tuple[TableCommit, ...]]:
    """Return which redo is the newest, its commits, and those that have undone some of it by now.

    Args:
        chain: The commits of the redos on which the rows stand, newest first; at least one.

    Returns:
        The hash of its plan; its own commits, newest first; and those of its undoing.
    """
    entries = [(commit, commit.entry) for commit in chain]
    newest = entries[0][1]
    assert newest is not None, "commits of redos have entries"
    plan = newest.undoes or newest.decision or ""
    undoing = tuple(commit for commit, _ in takewhile(lambda one: one[1] is not None and one[1].undoes == plan, entries))
    rest = entries[len(undoing) :]
    own = takewhile(lambda one: one[1] is not None and one[1].decision == plan and not one[1].undoes, rest)
    return plan, tuple(commit for commit, _ in own), undoing
