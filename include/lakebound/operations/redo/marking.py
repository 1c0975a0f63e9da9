"""Entries without rows by which a table says that a redo has begun, or that nothing of it is left."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.ledger.redo_progress import RedoProgress
from lakebound.tables.commit import Committed, commit_entry
from lakebound.tables.table import LedgerView, Table


@dataclass(frozen=True)
class Run:
    """A redo, or the undoing of one, as each of its entries names it.

    Attributes:
        pipeline: The pipeline.
        plan: Hash of its plan.
        source: Hash of the code that makes the rows; empty where it is not known.
        undoes: Hash of the plan of the redo that it undoes; None where it is a redo itself.
    """

    pipeline: str
    plan: str
    source: str = ""
    undoes: str | None = None

    def named(self, draft: Entry, first: str, left: int) -> Entry:
        """Return an entry of it, with how much is left. Pure but for the clock.

        Args:
            draft: The entry.
            first: Id of the commit with which it began in this table.
            left: How many offsets are left after this commit.
        """
        at_ms = int(time.time() * 1000) if left else 0
        return draft.model_copy(
            update={
                "decision": self.plan,
                "undoes": self.undoes,
                "redo_source": self.source,
                "redo_first": first,
                "redo_progress": RedoProgress(plan=self.plan, left=left, undoes=self.undoes, at_ms=at_ms),
            }
        )

    def mark(self, table: Table, view: LedgerView, left: int, *, first: str = "", attempts: int = 1) -> Committed:
        """Commit an entry without rows.

        Before the first rows of a redo each of its tables says so: a kill between two tables is then seen in both.

        Args:
            table: The table.
            view: Its ledger, as it was read last.
            left: How many offsets are left in it.
            first: Id of the commit with which it began in this table; empty where this is the one.
            attempts: How often to try.

        Raises:
            LakeboundError: What ``lakebound.tables.commit.commit_entry`` raises.
        """
        commit = new_commit_id()
        draft = Entry(kind="redo", pipeline=self.pipeline, epoch=view.epoch, commit=commit)
        draft = self.named(draft, first or commit, left)
        return commit_entry(table, view, [], draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=attempts)
