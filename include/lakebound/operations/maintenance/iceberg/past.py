"""What must not be taken from an Iceberg table: its snapshots, and the readers that stand on them."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.operations.maintenance.history import TablePast
from lakebound.operations.maintenance.iceberg.reader_position import iceberg_positions
from lakebound.operations.maintenance.table_past import past_of, positions, with_pins
from lakebound.spec.maintenance import ReaderSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.history import read_history
from lakebound.tables.places import Places


def read_past(spec: TableSpec, places: Places, readers: Sequence[ReaderSpec]) -> TablePast | None:
    """Return the snapshots of a table and who stands on which; None where there is no such table.

    Args:
        spec: The table.
        places: Where it is; they may be read-only.
        readers: Those of this table.

    Raises:
        FileNotFoundError: Commits removed the metadata under this, again and again.
    """
    found, problems = positions(readers, iceberg_positions)
    history = read_history(spec, places)
    return None if history is None else with_pins(past_of(history, spec.id), found, problems)
