"""What carries a plan's steps out: one method per kind of step, and what an engine says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lakebound.errors import LakeboundError, NewerEntryError
from lakebound.ledger.entry import Entry, carried
from lakebound.operations.maintenance import steps
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

MAX_TOLD = 100
"""Maximum number of paths in a report."""


class StepLostError(LakeboundError):
    """The stream, another run or a repair was faster: nothing is wrong, and the next attempt may succeed.

    Attributes:
        conflicts: Commits that were refused.
    """

    def __init__(self, table: str, reason: str, conflicts: int = 1) -> None:
        self.conflicts = conflicts
        super().__init__(f"table {table}: {reason}; nothing was lost, and the next run tries the step again")


class TableGoneError(LakeboundError):
    """A table is not there (any more)."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table} does not exist any more: it was dropped, or the catalog was changed; maintenance did nothing"
        )


class UnknownLedgerError(LakeboundError):
    """A table has no entry that could be carried on."""

    def __init__(self, table: str) -> None:
        super().__init__(f"table {table} has no ledger entry yet; start its pipeline once before maintenance")


class Engine(Protocol):
    """Carries out the steps. Each method may raise.

    Raises:
        StepLostError: Somebody else was faster; it may be tried again.
        LakeboundError: It is refused, with the reason; trying again is of no use.
    """

    def compact(self, table: TableSpec, step: steps.Compact) -> steps.StepEffect:
        """Rewrite small files of one partition.

        Args:
            table: The step's table.
            step: The partition, and sizes in bytes of the files to rewrite and to write.
        """

    def checkpoint_log(self, table: TableSpec, step: steps.CheckpointLog) -> steps.StepEffect:
        """Write a log checkpoint.

        Args:
            table: The step's table.
            step: Nothing but the table.
        """

    def clean_log(self, table: TableSpec, step: steps.CleanLog) -> steps.StepEffect:
        """Delete log files that no version needs which stays readable.

        Args:
            table: The step's table.
            step: The oldest version that stays.
        """

    def vacuum(self, table: TableSpec, step: steps.Vacuum) -> steps.StepEffect:
        """Delete files that no version within the retention needs.

        Args:
            table: The step's table.
            step: The retention in seconds, and whether the folder is listed.
        """

    def rewrite_manifests(self, table: TableSpec, step: steps.RewriteManifests) -> steps.StepEffect:
        """Rewrite many manifests as few.

        Args:
            table: The step's table.
            step: Nothing but the table.
        """

    def rewrite_position_deletes(self, table: TableSpec, step: steps.RewritePositionDeletes) -> steps.StepEffect:
        """Rewrite many position delete files as few.

        Args:
            table: The step's table.
            step: Nothing but the table.
        """

    def expire_snapshots(self, table: TableSpec, step: steps.ExpireSnapshots) -> steps.StepEffect:
        """Expire exactly the step's snapshots.

        Args:
            table: The step's table.
            step: Ids of the snapshots.
        """

    def remove_orphans(self, table: TableSpec, step: steps.RemoveOrphans) -> steps.StepEffect:
        """Find files that no version names, and move them aside where the step says so.

        Args:
            table: The step's table.
            step: The mode, and times in epoch milliseconds before which a file is an orphan or is deleted.
        """


def carry_out(engine: Engine, table: TableSpec, step: steps.MaintenanceStep) -> steps.StepEffect:
    """Have the engine carry one step out, and return what it did.

    Args:
        engine: Of the run.
        table: The step's table.
        step: What to do.

    Raises:
        StepLostError: Somebody else was faster; it may be tried again.
        LakeboundError: It is refused, with the reason; trying again is of no use.
    """
    match step:
        case steps.Compact():
            return engine.compact(table, step)
        case steps.CheckpointLog():
            return engine.checkpoint_log(table, step)
        case steps.CleanLog():
            return engine.clean_log(table, step)
        case steps.Vacuum():
            return engine.vacuum(table, step)
        case steps.RewriteManifests():
            return engine.rewrite_manifests(table, step)
        case steps.RewritePositionDeletes():
            return engine.rewrite_position_deletes(table, step)
        case steps.ExpireSnapshots():
            return engine.expire_snapshots(table, step)
        case steps.RemoveOrphans():
            return engine.remove_orphans(table, step)


def carried_entry(table: TableSpec, places: Places) -> Entry:
    """Return the entry that counts, as a commit onto the version of this moment carries it on.

    Args:
        table: The table.
        places: Where it is.

    Raises:
        TableGoneError: There is no such table.
        UnknownLedgerError: No entry counts yet.
        LakeboundError: What reading the ledger raises: a table whose ledger is in doubt is left as it is.
    """
    opened = open_table(table, places)
    if not opened.exists():
        raise TableGoneError(table.id)
    entry = opened.read_ledger().entry
    if entry is None:
        raise UnknownLedgerError(table.id)
    return carried(entry)


def check_ledger(table: TableSpec, places: Places) -> None:
    """Check, before a step works, that its commit will find an entry to carry on.

    Args:
        table: The table.
        places: Where it is.

    Raises:
        LakeboundError: As ``carried_entry`` says.
    """
    carried_entry(table, places)


def check_known(table: TableSpec, places: Places) -> None:
    """Check that the table says nothing that this version does not know: some steps need no entry, and delete files.

    Args:
        table: The table; it may not be there.
        places: Where it is.

    Raises:
        NewerEntryError: Its newest entry needs a later version.
    """
    opened = open_table(table, places)
    try:
        if opened.exists():
            opened.read_ledger()
    except NewerEntryError:
        raise
    except LakeboundError:
        return  # each step says by itself what it needs of the ledger


def told(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that a report names."""
    return tuple(paths[:MAX_TOLD])
