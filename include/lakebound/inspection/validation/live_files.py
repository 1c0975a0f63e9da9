"""The files that a table consists of now, or that hold its recent rows: what a range is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from lakebound.errors import LakeboundError
from lakebound.inspection.validation.landed_files import LandedFile, file_named
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

_TIMESTAMP = f"{KAFKA_COLUMN}.timestamp"


class DeletesInTableError(LakeboundError):
    """A table's rows cannot be read from its data files alone."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table} cannot be used for a comparison: it has delete files or deletion vectors, so its data files also "
            f"contain deleted rows"
        )


def live_files(spec: TableSpec, places: Places, *, since_ms: int | None = None) -> list[LandedFile]:
    """Return the table's files; none where there is no such table.

    Args:
        spec: The table.
        places: Where it is.
        since_ms: Leave out files whose statistics say that all of their records are older, by Kafka's time.

    Raises:
        DeletesInTableError: Its files hold rows that were deleted.
    """
    return list(_delta(spec, places, since_ms) if spec.format == "delta" else _iceberg(spec, places, since_ms))


def _delta(spec: TableSpec, places: Places, since_ms: int | None) -> Iterator[LandedFile]:
    import pyarrow as pa
    from deltalake import DeltaTable

    from lakebound.tables.delta.open import open_at
    from lakebound.tables.partition_values import delta_partition_texts

    folder = places.folder(spec)
    if not DeltaTable.is_deltatable(folder.address, folder.delta_options):
        return
    table = open_at(folder)
    if "deletionVectors" in (table.protocol().reader_features or []):
        raise DeletesInTableError(spec.id)
    actions = pa.table(table.get_add_actions(flatten=True))
    texts = {n.partition(".")[2]: delta_partition_texts(actions[n]) for n in actions.column_names if n.startswith("partition.")}
    for number, row in enumerate(actions.to_pylist()):
        if since_ms is not None and _is_older(row.get(f"max.{_TIMESTAMP}"), since_ms):
            continue
        partition = {name: each[number] for name, each in texts.items()}
        yield LandedFile(file_named(folder, row["path"]), str(table.version()), 0, row.get("num_records"), partition)


def _iceberg(spec: TableSpec, places: Places, since_ms: int | None) -> Iterator[LandedFile]:
    from pyiceberg.expressions import AlwaysTrue, BooleanExpression

    from lakebound.tables.iceberg.open import open_catalog

    catalog = open_catalog(places)
    if not catalog.table_exists((spec.namespace, spec.short_name)):
        return
    table = catalog.load_table((spec.namespace, spec.short_name))
    wanted: str | BooleanExpression = AlwaysTrue()
    if since_ms is not None:
        wanted = f"{_TIMESTAMP} >= '{datetime.fromtimestamp(since_ms / 1000, UTC).isoformat()}'"
    for task in table.scan(row_filter=wanted).plan_files():
        if task.delete_files:
            raise DeletesInTableError(spec.id)
        yield LandedFile(places.file_at(task.file.file_path), "", 0, task.file.record_count)


def _is_older(newest: Any, since_ms: int) -> bool:
    return isinstance(newest, datetime) and newest.astimezone(UTC).timestamp() * 1000 < since_ms
