"""Reads the rows of a table at one version, in pieces and in no order, as a store needs them. Engine-free."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import DeltaError

from lakebound.errors import RowsNotReadError
from lakebound.first_line import first_line
from lakebound.spec.table import TableSpec
from lakebound.tables.contents import contents_of
from lakebound.tables.fitting import fit_rows
from lakebound.tables.places import Places
from lakebound.tables.schemas import normalise_schema

_ROWS_AT_ONCE = 100_000


def read_rows(spec: TableSpec, places: Places, version: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the rows.

    Args:
        spec: The table.
        places: Where it is.
        version: Delta version or Iceberg snapshot id.
        schema: The columns that are read.

    Raises:
        RowsNotReadError: They cannot be read.
    """
    with _explained(spec):
        frame = contents_of(spec, places.read_only()).frame(int(version)).select(schema.names)
        for part in frame.collect_batches(chunk_size=_ROWS_AT_ONCE, maintain_order=False):
            found = part.to_arrow()
            if found.num_rows:
                yield fit_rows(found.cast(normalise_schema(found.schema)), schema)


def about_how_many_keys(spec: TableSpec, places: Places, version: str, key: str) -> int | None:
    """Return an estimate of the number of keys, by one column alone; None where it cannot be estimated.

    Args:
        spec: The table.
        places: Where it is.
        version: Delta version or Iceberg snapshot id.
        key: The column.

    Raises:
        RowsNotReadError: It cannot be read.
    """
    import polars as pl

    with _explained(spec):
        try:
            keys = contents_of(spec, places.read_only()).frame(int(version)).select(pl.col(key).approx_n_unique())
            return int(keys.collect().item())
        except pl.exceptions.InvalidOperationError:
            return None


@contextmanager
def _explained(spec: TableSpec) -> Iterator[None]:
    import polars as pl

    try:
        with warnings.catch_warnings():
            # Polars plans an Iceberg scan with PyIceberg, and recommends a plugin of its own.
            warnings.simplefilter("ignore", pl.exceptions.PerformanceWarning)
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, DeltaError, pa.ArrowException, OSError) as exc:
        what_to_do = "If the table was changed meanwhile, plan again; lakebound doctor says whether it can be read"
        raise RowsNotReadError(spec.id, first_line(exc), what_to_do) from exc
