"""What tables say of the records that landed in them: the epoch of the newest commit, and the topics."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from lakebound.errors import LakeboundError
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table

RECENT_ENTRIES = 100


def newest_landed_epoch(tables: Iterable[Table]) -> int:
    """Return the epoch of the newest commit with rows, over all tables; 0 without any among their recent entries."""
    return max((_landed_epoch(table) for table in tables if table.exists()), default=0)


def landed_topics(spec: PipelineSpec, places: Places) -> frozenset[str]:
    """Return the topics of which the tables' ledgers hold offsets, as far as they can be read."""
    found: set[str] = set()
    for one in spec.tables:
        try:
            table = open_table(one, places)
            found.update(table.read_ledger().coverage if table.exists() else ())
        except (LakeboundError, OSError):
            continue
    return frozenset(found)


def _landed_epoch(table: Table) -> int:
    table.read_ledger()
    recent = islice(table.entries(), RECENT_ENTRIES)
    return next((committed.entry.epoch for committed in recent if committed.entry.rows), 0)
