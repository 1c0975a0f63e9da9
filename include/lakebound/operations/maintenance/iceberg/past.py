"""What must not be taken from an Iceberg table: its snapshots, and the readers that stand on them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from lakebound.operations.maintenance.history import TablePast
from lakebound.operations.maintenance.reader_positions import ReaderUnreadableError, Sources, newest_finished, read_file
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


_SNAPSHOT = "snapshot_id"


def iceberg_positions(reader: ReaderSpec) -> tuple[int, ...]:
    """Return the snapshots that a reader has read last, or is in the middle of: one for each Iceberg table of its query.

    Of one that runs with Trigger.AvailableNow they are the snapshots at which it once began: each start looks for these.

    Raises:
        ReaderUnreadableError: It cannot be learned.
    """
    if reader.version is not None or reader.checkpoint is None:
        return (int(reader.version or 0),)
    sources: Sources
    if reader.available_now:
        sources = list(_beginnings(reader, reader.checkpoint))
    else:
        _, sources = newest_finished(reader, reader.checkpoint)
    found = tuple(int(source[_SNAPSHOT]) for source in sources if source and _SNAPSHOT in source)
    if not found:
        raise ReaderUnreadableError(reader.name, reader.checkpoint, "its query reads no Iceberg table")
    return found


def _beginnings(reader: ReaderSpec, checkpoint: Path) -> Iterator[dict[str, Any]]:
    """Yield the offset at which each Iceberg source once began, as Iceberg itself keeps it."""
    for path in sorted((checkpoint / "sources").glob("*/offsets/0")):
        try:
            source = json.loads(read_file(path))
        except (OSError, ValueError) as exc:
            raise ReaderUnreadableError(reader.name, checkpoint, f"{path} cannot be read: {exc}") from exc
        if isinstance(source, dict):
            yield source
