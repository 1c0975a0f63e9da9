"""What a table holds now, by its metadata and files: how much, in which files, and its rows, read without Spark.

Each format has its own in ``contents.py`` of its folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakebound.errors import LakeboundError
from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.storage.location import Location
from lakebound.tables.formats import PerFormat
from lakebound.tables.history import CommittedFile
from lakebound.tables.places import Places

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

TIMESTAMP = f"{KAFKA_COLUMN}.timestamp"


class DeletesInTableError(LakeboundError):
    """A table's rows cannot be read from its data files alone."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table} cannot be used for a comparison: it has delete files or deletion vectors, so its data files also "
            f"contain deleted rows"
        )


@dataclass(frozen=True)
class TableSize:
    """What the table's current version holds."""

    rows: int
    files: int
    size_bytes: int


@dataclass(frozen=True)
class Selection:
    """Which columns of which rows are read.

    Attributes:
        kafka: Fields of ``_kafka``; they come first, by their own names.
        columns: Other columns; one that the table does not have is left out.
        among: Column to the values of which a row has one.
        offsets: From the first up to and with the second; None: any.
    """

    kafka: Sequence[str]
    columns: Sequence[str] = ()
    among: Mapping[str, Sequence[str]] = field(default_factory=dict)
    offsets: tuple[int, int] | None = None


@dataclass(frozen=True)
class TableContents(ABC):
    """One table, which exists unless a method says that it need not.

    Attributes:
        spec: The table.
        places: Where it is.
    """

    spec: TableSpec
    places: Places

    @abstractmethod
    def size(self) -> TableSize:
        """Return what the newest version holds, without reading a data file."""

    @abstractmethod
    def files(self, since_ms: int | None = None) -> Iterator[CommittedFile]:
        """Yield the table's files; none where there is no such table.

        Args:
            since_ms: Leave out files whose statistics say that all of their records are older, by Kafka's time.

        Raises:
            DeletesInTableError: Its files hold rows that were deleted.
        """

    @abstractmethod
    def rows(self, selection: Selection) -> Iterator[pa.RecordBatch]:
        """Yield some columns of some rows: as far as statistics help, of the files that hold them.

        Args:
            selection: Which.
        """

    @abstractmethod
    def frame(self, version: int | None = None) -> pl.LazyFrame:
        """Return the table as Polars reads it; nothing of its data is read yet.

        Args:
            version: Delta version or Iceberg snapshot id; None: the newest.
        """

    def remembered_epoch(self) -> int | None:
        """Return the epoch that the table keeps beside its entries, where no clean-up removes it; None where it keeps none."""
        return None


_CONTENTS: PerFormat[Callable[[TableSpec, Places], TableContents]] = PerFormat("lakebound.tables", "contents:Contents")


def contents_of(spec: TableSpec, places: Places) -> TableContents:
    """Return what a table holds; nothing is read yet.

    Args:
        spec: The table.
        places: Where it is.
    """
    return _CONTENTS.of(spec.format)(spec, places)


def store_options(place: Location) -> dict[str, str] | None:
    """Return what Polars is told of a store; None of a folder of this machine."""
    options = place.delta_options
    if options is None:
        return None
    # It has other names for how often it tries.
    return {name: value for name, value in options.items() if name.startswith("aws_")}
