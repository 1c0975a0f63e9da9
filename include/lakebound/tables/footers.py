"""The footers of Parquet files, wherever these lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow.parquet as pq

from lakebound.storage.location import Location
from lakebound.storage.requests import ahead


def read_footers(files: Sequence[Location]) -> Iterator[pq.FileMetaData | None]:
    """Yield the footer of each file, in order; None of one that is gone."""
    is_local = all(file.is_local for file in files)
    yield from map(_footer, files) if is_local else ahead(_footer, files)


def _footer(file: Location) -> pq.FileMetaData | None:
    try:
        with file.open() as opened:
            return pq.read_metadata(opened)
    except FileNotFoundError:
        return None
