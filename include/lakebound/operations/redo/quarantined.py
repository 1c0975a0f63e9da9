"""What of a redone range is in quarantine: a record that was bad, and lands now, is in both places from then on."""

from __future__ import annotations

from collections.abc import Sequence

from lakebound.inspection.proof.history import spans_of
from lakebound.inspection.proof.offset_arrays import Arrays, both, either, index_rows, size, within
from lakebound.ledger.entry import Offsets
from lakebound.operations.erase.copying import read_origins
from lakebound.operations.release.candidates import offsets_in
from lakebound.operations.release.reading import read_places
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import wait_stored
from lakebound.tables.places import Places
from lakebound.tables.table import DataFile


def quarantined_among(quarantine: TableSpec, places: Places, offsets: Offsets) -> Arrays:
    """Return those of the offsets that are in quarantine, sorted.

    Args:
        quarantine: The quarantine table.
        places: Where it is.
        offsets: The offsets.
    """
    spans = spans_of(offsets)
    edges = [edge for intervals in spans.values() for start, end in intervals for edge in (start, end - 1)]
    if not edges:
        return {}
    return within(offsets_in(read_places(quarantine, places, min(edges), max(edges))), spans)


def count_from_quarantine(files: Sequence[DataFile], quarantined: Arrays) -> int:
    """Return how many records have rows in new files and are in quarantine from before.

    Args:
        files: With the new rows.
        quarantined: Offsets in quarantine.
    """
    if not any(len(offsets) for offsets in quarantined.values()):
        return 0
    wait_stored(files)
    landed: Arrays = {}
    for file in files:
        landed = either(landed, index_rows(read_origins(file)).records)
    return size(both(landed, quarantined))
