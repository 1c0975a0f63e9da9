"""The files of which a table consists now, or that hold its recent rows: what reads a table's rows without its library."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lakebound.errors import LakeboundError
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.formats import PerFormat
from lakebound.tables.history import CommittedFile
from lakebound.tables.places import Places

TIMESTAMP = f"{KAFKA_COLUMN}.timestamp"


class DeletesInTableError(LakeboundError):
    """A table's rows cannot be read from its data files alone."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table} cannot be used for a comparison: it has delete files or deletion vectors, so its data files also "
            f"contain deleted rows"
        )


_READERS: PerFormat[Callable[[TableSpec, Places, int | None], Iterator[CommittedFile]]] = PerFormat(
    "lakebound.tables", "current_files:current_files"
)


def current_files(spec: TableSpec, places: Places, *, since_ms: int | None = None) -> list[CommittedFile]:
    """Return the table's files; none where there is no such table.

    Args:
        spec: The table.
        places: Where it is.
        since_ms: Leave out files whose statistics say that all of their records are older, by Kafka's time.

    Raises:
        DeletesInTableError: Its files hold rows that were deleted.
    """
    return list(_READERS.of(spec.format)(spec, places, since_ms))
