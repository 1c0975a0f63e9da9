"""An Iceberg table's metadata file as JSON, and its change by compare-and-swap: no object per snapshot, be they thousands."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json
from pyiceberg.catalog.sql import IcebergTables
from pyiceberg.table import TableProperties
from pyiceberg.table.locations import load_location_provider
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from lakebound.spec.pipeline import TableSpec
from lakebound.tables.iceberg.catalog import LedgerCatalog, later_than
from lakebound.tables.iceberg.local_files import local_path, sync_locations
from lakebound.tables.iceberg.metadata_json import Body, parse_body

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


def metadata_location(catalog: LedgerCatalog, table: TableSpec) -> str | None:
    """Return where the catalog says that the table's metadata is; None where it knows no such table."""
    with Session(catalog.engine) as session:
        return session.scalar(select(IcebergTables.metadata_location).where(*_is(catalog, table)))


def read_body(location: str) -> Body:
    """Return a metadata file's JSON.

    Raises:
        FileNotFoundError: A later commit has removed it.
    """
    return parse_body(local_path(location).read_bytes())


def change(
    catalog: LedgerCatalog,
    table: TableSpec,
    how: Callable[[Body], Body | None],
    attempts: int,
    *,
    on_conflict: Callable[[], None] = lambda: None,
) -> Changed | None:
    """Replace the metadata by what ``how`` makes of it, again and again until nobody else was faster.

    Args:
        catalog: Of the table.
        table: The table.
        how: Returns the new metadata, leaving its argument as it is; None: nothing is to be changed.
        attempts: How often to try.
        on_conflict: Called after each attempt in which somebody else was faster.

    Returns:
        The change; None where nothing was to be changed.

    Raises:
        LookupError: There is no such table.
        TimeoutError: Somebody else was faster each time.
    """
    for attempt in range(attempts):
        location = metadata_location(catalog, table)
        if location is None:
            raise LookupError(table.id)
        try:
            before = read_body(location)
        except FileNotFoundError:
            on_conflict()
            continue  # two commits further already
        after = how(before)
        if after is None:
            return None
        after = _logged(after, before, location)
        path = next_location(after["location"], after.get("properties", {}), location)
        local_path(path).write_bytes(to_json(after))
        sync_locations([path], after["location"])
        if swap(catalog, table, location, path):
            _delete_dropped(before, after)
            return Changed(before, after, attempt)
        local_path(path).unlink()
        on_conflict()
        time.sleep(random.uniform(0, min(0.02 * 2**attempt, _LONGEST_WAIT_SECONDS)))
    raise TimeoutError(f"{attempts} attempts")


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
    number = local_path(old).name.split("-", 1)[0]
    provider = load_location_provider(location, properties)
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


def _delete_dropped(before: Body, after: Body) -> None:
    """Delete metadata files that fell out of the log, where the table's properties ask for it."""
    properties = after.get("properties", {})
    if str(properties.get(TableProperties.METADATA_DELETE_AFTER_COMMIT_ENABLED, "false")).lower() != "true":
        return
    kept = {entry["metadata-file"] for entry in after["metadata-log"]}
    for entry in before.get("metadata-log", []):
        if entry["metadata-file"] not in kept:
            local_path(entry["metadata-file"]).unlink(missing_ok=True)
