"""Some columns of some rows of a table, read without Spark and, as far as statistics help, of the files that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakebound.spec.table import TableSpec
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places


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


_READERS: PerFormat[Callable[[TableSpec, Places, Selection], Iterator[pa.RecordBatch]]] = PerFormat(
    "lakebound.tables", "selected_rows:selected_rows"
)


def selected_rows(spec: TableSpec, places: Places, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Yield the rows.

    Args:
        spec: The table; it exists.
        places: Where it is.
        selection: Which.
    """
    return _READERS.of(spec.format)(spec, places, selection)
