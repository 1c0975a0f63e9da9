"""Reference data in a Delta table."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from lakebound.spec.reference import ReferenceSpec
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.delta.open import open_delta
from lakebound.tables.places import Places
from lakebound_spark.reference.loaded import Loaded, UnusableReferenceError, Version, check_size, in_folder, normalised


def look(spec: ReferenceSpec, places: Places) -> Version:
    """Return the newest version; reads no rows.

    Args:
        spec: As it is declared.
        places: Those of the pipeline.

    Raises:
        UnusableReferenceError: There is no such table.
    """
    return _open(spec, places)[1]


def load(spec: ReferenceSpec, places: Places) -> Loaded:
    """Return the rows of the newest version; arguments and errors are those of ``look``."""
    handle, version = _open(spec, places)
    counts = pa.table(handle.get_add_actions(flatten=True))["num_records"].to_pylist()
    check_size(None if None in counts else sum(counts))
    return Loaded(version, normalised(handle.to_pyarrow_table()))


def _open(spec: ReferenceSpec, places: Places) -> tuple[DeltaTable, Version]:
    named = TableSpec(format="delta", name=spec.name) if spec.name else None
    folder = places.folder(named) if named is not None else Location(str(in_folder(spec, places)))
    try:
        handle = open_delta(folder, spec.told)
    except TableNotFoundError as exc:
        raise UnusableReferenceError(f"there is no Delta table at {folder}") from exc
    return handle, Version(str(handle.version()), f"{handle.metadata().id}@{handle.version()}")
