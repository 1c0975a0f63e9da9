"""The epoch in a Delta log's ``txn``, which no log clean-up removes."""

from __future__ import annotations

from lakebound.ledger.entry import ENTRY_KEY
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.fence import epoch_of
from lakebound.tables.places import Places


def remembered_epoch(spec: TableSpec, places: Places) -> int | None:
    """Return the epoch that last committed; None where none is known."""
    version = open_at(places.folder(spec)).transaction_version(ENTRY_KEY)
    return None if version is None else epoch_of(version)
