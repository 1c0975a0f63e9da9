"""A ledger that is older than the table: to continue from it would land rows twice, so it is refused."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lakebound.errors import LedgerBehindError
from lakebound.ledger.entry import Offsets, count, missing
from lakebound.tables.contents import contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import LedgerView, ReconstructedCoverage, Table
from lakebound.tables.target import LandingTarget


@runtime_checkable
class HoldsRows(Protocol):
    """A target whose rows tell which offsets it holds."""

    def reconstruct(self) -> ReconstructedCoverage | None:
        """Work out coverage without entries."""


def rows_beyond(table: LandingTarget, view: LedgerView) -> Offsets:
    """Return the offsets of rows that the entry does not know of; looked for only where the entry may lag.

    Maintenance of an older version carried on the entry that it had read when it began; a batch may have landed meanwhile, and
    its commit be expired since.

    Args:
        table: The table, opened.
        view: The ledger as it was just read from it.
    """
    if view.entry is None or not view.may_lag or not isinstance(table, HoldsRows):
        return {}
    found = table.reconstruct()
    return missing(found.coverage, view.entry.coverage) if found is not None else {}


def check_rows_known(table: LandingTarget, view: LedgerView) -> None:
    """Raise LedgerBehindError when rows of the table lie beyond its entry; reads rows or statistics only where it may lag.

    Args:
        table: The table, opened.
        view: The ledger as it was just read from it.

    Raises:
        LedgerBehindError: It is so.
    """
    beyond = count(rows_beyond(table, view))
    if beyond:
        raise LedgerBehindError(
            table.spec.id, f"it holds rows of {beyond} offsets that the entry carried on by maintenance does not know"
        )


def check_not_behind(table: Table, view: LedgerView, places: Places) -> None:
    """Raise LedgerBehindError when the table holds more than the entry says.

    Args:
        table: The table, opened; its rows may be read.
        view: The ledger as it was just read from it.
        places: Where this machine keeps tables and state folders.

    Raises:
        LedgerBehindError: Rows lie beyond a carried entry, or Delta's log was written by a later epoch than the entry's.
    """
    check_rows_known(table, view)
    remembered = contents_of(table.spec, places).remembered_epoch()
    if view.entry is not None and remembered is not None and remembered > view.epoch:
        raise LedgerBehindError(
            table.spec.id, f"its log was written by epoch {remembered}, and its newest entry is of epoch {view.epoch}"
        )


def read_not_behind(table: Table, places: Places) -> LedgerView:
    """Read the ledger of a table as a guest of the stream, who would else carry on what a start refuses.

    Args:
        table: The table, opened; its rows may be read, and others may commit meanwhile.
        places: Where this machine keeps tables and state folders.

    Raises:
        LedgerBehindError: As ``check_not_behind`` says.
    """
    while True:
        view = table.read_ledger()
        try:
            check_not_behind(table, view, places)
        except LedgerBehindError:
            if table.read_ledger().version == view.version:
                raise
        else:
            return view
