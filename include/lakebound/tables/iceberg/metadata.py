"""An Iceberg table's metadata file as JSON, and its change by compare-and-swap: no object per snapshot, be they thousands."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json
from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.table import TableProperties
from sqlalchemy import update
from sqlalchemy.orm import Session

from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.iceberg.catalog import LedgerCatalog, later_than
from lakebound.tables.iceberg.features import locations_of
from lakebound.tables.iceberg.local_files import sync_locations
from lakebound.tables.iceberg.metadata_json import Body, parse_body
from lakebound.tables.iceberg.open import AnyCatalog
from lakebound.tables.places import Places

if TYPE_CHECKING:
    from lakebound.tables.iceberg.glue import GlueLedgerCatalog
    from lakebound.tables.iceberg.rest import RestLedgerCatalog

_LONGEST_WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class Changed:
    """A change that took place.

    Attributes:
        before: The metadata that it replaced.
        after: What it was replaced by.
        conflicts: How often somebody else was faster.
    """

    before: Body
    after: Body
    conflicts: int


def metadata_location(catalog: AnyCatalog, table: TableSpec) -> str | None:
    """Return where the catalog says that the table's metadata is; None where it knows no such table."""
    return catalog.pointer((table.namespace, table.short_name))


def read_body(file: Location) -> Body:
    """Return a metadata file's JSON.

    Raises:
        FileNotFoundError: A later commit has removed it.
    """
    return parse_body(file.read())


def read_table(catalog: AnyCatalog, table: TableSpec, places: Places) -> tuple[str, Body] | None:
    """Return where a table's metadata is, and its JSON; None where there is no such table.

    Args:
        catalog: Of the table.
        table: The table.
        places: Where it is.

    Raises:
        FileNotFoundError: A commit removed the metadata file meanwhile: read again.
    """
    if isinstance(catalog, LedgerCatalog):
        location = metadata_location(catalog, table)
        return None if location is None else (location, read_body(places.file_at(location)))
    try:
        return catalog.read((table.namespace, table.short_name))
    except NoSuchTableError:
        return None


def change(
    catalog: AnyCatalog,
    table: TableSpec,
    places: Places,
    how: Callable[[Body], Body | None],
    attempts: int,
    *,
    on_conflict: Callable[[], None] = lambda: None,
) -> Changed | None:
    """Replace the metadata by what ``how`` makes of it, again and again until nobody else was faster.

    Args:
        catalog: Of the table.
        table: The table.
        places: Where it is.
        how: Returns the new metadata, leaving its argument as it is; None: nothing is to be changed. A catalog that makes the
            metadata itself is asked for the snapshots that are missing then to be removed, and for nothing else.
        attempts: How often to try.
        on_conflict: Called after each attempt in which somebody else was faster.

    Returns:
        The change; None where nothing was to be changed.

    Raises:
        LookupError: There is no such table.
        TimeoutError: Somebody else was faster each time.
    """
    for attempt in range(attempts):
        try:
            found = read_table(catalog, table, places)
        except FileNotFoundError:
            on_conflict()
            continue  # two commits further already
        if found is None:
            raise LookupError(table.id)
        location, before = found
        after = how(before)
        if after is None:
            return None
        if isinstance(catalog, LedgerCatalog):
            changed = _replace(catalog, table, places, location, before, after)
        else:
            changed = _removed(catalog, table, before, after)
        if changed is not None:
            return Changed(before, changed, attempt)
        on_conflict()
        time.sleep(random.uniform(0, min(0.02 * 2**attempt, _LONGEST_WAIT_SECONDS)))
    raise TimeoutError(f"{attempts} attempts")


def _replace(catalog: LedgerCatalog, table: TableSpec, places: Places, location: str, before: Body, after: Body) -> Body | None:
    """Put the metadata in place of what the catalog names, and return it; None where it names another file meanwhile."""
    after = _logged(after, before, location)
    path = next_location(after["location"], after.get("properties", {}), location)
    file = places.file_at(path)
    if file.is_local:
        file.path.write_bytes(to_json(after))
        sync_locations([path], after["location"])
    else:
        file.put(to_json(after))
    if not swap(catalog, table, location, path):
        file.delete()
        return None
    _delete_dropped(before, after, places)
    return after


def _removed(catalog: RestLedgerCatalog | GlueLedgerCatalog, table: TableSpec, before: Body, after: Body) -> Body | None:
    """Have the catalog remove snapshots, and return the metadata then; None where the table has moved on meanwhile."""
    gone = {one["snapshot-id"] for one in before["snapshots"]} - {one["snapshot-id"] for one in after["snapshots"]}
    try:
        return catalog.remove_snapshots((table.namespace, table.short_name), before, gone)
    except CommitFailedException:
        return None


def _is(catalog: LedgerCatalog, table: TableSpec) -> tuple[Any, ...]:
    return (
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == table.namespace,
        IcebergTables.table_name == table.short_name,
    )


def swap(catalog: LedgerCatalog, table: TableSpec, old: str, new: str) -> bool:
    """Have the catalog name another metadata file, which is on the disk, and return whether it named the old one until then.

    Args:
        catalog: Catalog that names the table's metadata file.
        table: The table in this catalog.
        old: Address of the metadata file that the catalog must still name; otherwise nothing is changed.
        new: Address of the metadata file that it is to name from now on.
    """
    change = update(IcebergTables).where(*_is(catalog, table), IcebergTables.metadata_location == old)
    with Session(catalog.engine) as session:
        swapped = session.execute(change.values(metadata_location=new, previous_metadata_location=old))
        session.commit()
        return bool(swapped.rowcount)  # type: ignore[attr-defined]


def next_location(location: str, properties: dict[str, str], old: str) -> str:
    """Return where the metadata file after another one goes.

    Args:
        location: The table's.
        properties: The table's.
        old: The metadata file before.
    """
    number = old.rpartition("/")[2].split("-", 1)[0]
    provider = locations_of(location, properties)
    return provider.new_table_metadata_file_location(int(number) + 1 if number.isdigit() else 0)


def _logged(after: Body, before: Body, location: str) -> Body:
    """Return the metadata with its predecessor in the log, which is as long as the table's property asks."""
    properties = after.get("properties", {})
    kept = int(
        properties.get(TableProperties.METADATA_PREVIOUS_VERSIONS_MAX, TableProperties.METADATA_PREVIOUS_VERSIONS_MAX_DEFAULT)
    )
    entry = {"timestamp-ms": before["last-updated-ms"], "metadata-file": location}
    log = [*before.get("metadata-log", []), entry][-max(kept, 1) :]
    return {**after, "metadata-log": log, "last-updated-ms": later_than(before["last-updated-ms"])}


def _delete_dropped(before: Body, after: Body, places: Places) -> None:
    """Delete metadata files that fell out of the log, where the table's properties ask for it."""
    properties = after.get("properties", {})
    if str(properties.get(TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED, "false")).lower() != "true":
        return
    kept = {entry["metadata-file"] for entry in after["metadata-log"]}
    for entry in before.get("metadata-log", []):
        if entry["metadata-file"] not in kept:
            places.file_at(entry["metadata-file"]).delete()
