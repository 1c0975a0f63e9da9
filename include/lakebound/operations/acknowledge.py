"""A person says that what others changed in a table is right: one commit takes it from what the entries remember."""

from __future__ import annotations

from collections.abc import Collection

from lakebound.errors import LakeboundError
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.ledger.foreign_changes import ForeignChange, remembered
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.commit import commit_entry
from lakebound.tables.guest import retry_as_guest
from lakebound.tables.places import Places
from lakebound.tables.table import LedgerView, open_table


class NothingToAcknowledgeError(LakeboundError, is_seen_by_a_start_alone=True):
    """A table remembers no such change."""

    def __init__(self, table: str, known: Collection[str]) -> None:
        named = f"it remembers version {', '.join(known)}" if known else "it remembers none"
        super().__init__(f"table {table} has no such change by others to acknowledge: {named}; nothing was written")


def acknowledge(
    spec: PipelineSpec, table: TableSpec, places: Places, versions: Collection[str] = ()
) -> tuple[ForeignChange, ...]:
    """Commit that changes by others are right, beside the stream if it runs, and return them.

    Args:
        spec: The pipeline.
        table: One of its tables, or its quarantine.
        places: Where they are.
        versions: Of the changes; none: all that are known.

    Raises:
        NothingToAcknowledgeError: The table remembers no such change.
        LakeboundError: The ledger cannot be read, or the commit did not get through.
    """
    opened = open_table(table, places)

    def work() -> tuple[ForeignChange, ...]:
        view = opened.read_ledger() if opened.exists() else LedgerView(None, "")
        known = remembered(view.entry.foreign_changes if view.entry else (), view.foreign_changes)
        chosen = tuple(one for one in known if not versions or one.version in versions)
        if not chosen or {*versions} - {one.version for one in chosen}:
            raise NothingToAcknowledgeError(table.id, [one.version for one in known])
        draft = Entry(
            kind="open",
            pipeline=spec.pipeline,
            epoch=view.epoch,
            commit=new_commit_id(),
            acknowledges=tuple(one.version for one in chosen),
        )
        commit_entry(opened, view, [], draft, own_epoch=view.epoch, check_lease=lambda: None, attempts=1)
        return chosen

    return retry_as_guest(work, what="acknowledge", attempts=spec.limits.commit_attempts)
