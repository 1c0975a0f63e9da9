"""Where an Iceberg table lies, and the names of all files that its snapshots need."""

from __future__ import annotations

from collections.abc import Iterator

from lakebound.operations.maintenance.engines import TableGoneError
from lakebound.operations.maintenance.iceberg.reach import needed
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.iceberg.metadata import read_table
from lakebound.tables.iceberg.metadata_json import Body
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places


def place_of(table: TableSpec, places: Places) -> Location:
    """Return the folder below which all files of the table lie.

    Args:
        table: The table.
        places: Where it is.

    Raises:
        TableGoneError: There is no such table.
    """
    # A catalog may say it with a slash at its end.
    return places.file_at(_read(table, places)[1]["location"].rstrip("/"))


def needed_names(table: TableSpec, places: Places, root: Location) -> Iterator[str]:
    """Yield what the metadata names, and itself.

    Args:
        table: The table.
        places: Where it is.
        root: Its folder.
    """
    location, body = _read(table, places)
    yield location
    yield from needed(body, places)


def _read(table: TableSpec, places: Places) -> tuple[str, Body]:
    found = read_table(open_catalog(places), table, places)
    if found is None:
        raise TableGoneError(table.id)
    return found
