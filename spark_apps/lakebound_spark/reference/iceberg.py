"""Reference data in an Iceberg table."""

from __future__ import annotations

from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from lakebound.spec.reference import ReferenceSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound_spark.reference.loaded import Loaded, UnusableReferenceError, Version, check_size, normalised


def look(spec: ReferenceSpec, places: Places) -> Version:
    """Return the current snapshot; reads no rows.

    Args:
        spec: As it is declared.
        places: Those of the pipeline.

    Raises:
        UnusableReferenceError: There is no such table.
    """
    return _open(spec, places)[1]


def load(spec: ReferenceSpec, places: Places) -> Loaded:
    """Return the rows of the current snapshot; arguments and errors are those of ``look``."""
    loaded, version = _open(spec, places)
    snapshot = loaded.current_snapshot()
    told = None if snapshot is None or snapshot.summary is None else snapshot.summary.additional_properties.get("total-records")
    check_size(None if told is None else int(told))
    scan = loaded.scan() if snapshot is None else loaded.scan(snapshot_id=snapshot.snapshot_id)
    return Loaded(version, normalised(scan.to_arrow()))


def _open(spec: ReferenceSpec, places: Places) -> tuple[Table, Version]:
    assert spec.name is not None, "the model asks for it"
    table = TableSpec(format="iceberg", name=spec.name)
    try:
        loaded = open_catalog(places.read_only()).load_table((table.namespace, table.short_name))
    except NoSuchTableError as exc:
        raise UnusableReferenceError(f"there is no Iceberg table {table.namespace}.{table.short_name} in the catalog") from exc
    snapshot = loaded.current_snapshot()
    text = "empty" if snapshot is None else str(snapshot.snapshot_id)
    return loaded, Version(text, f"{loaded.metadata.table_uuid}@{text}")
