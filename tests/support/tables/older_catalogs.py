"""A copy of the embedded catalog, the commits that come after it, and the copy put back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from lakebound.tables.iceberg.local_files import local_path
from lakebound.tables.iceberg.metadata import metadata_location
from lakebound.tables.iceberg.open import open_catalog
from tests.support.tables.local_tables import lander
from tests.support.tables.recovering import ICEBERG, Case


def catalog_file(case: Case) -> Path:
    return case.at.iceberg_warehouse / "catalog.db"


def copied(case: Case, tmp_path: Path) -> Path:
    """Return a copy of the catalog as it is now."""
    copy = tmp_path / "older.db"
    with closing(sqlite3.connect(catalog_file(case))) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def put_back(case: Case, copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as source, closing(sqlite3.connect(catalog_file(case))) as target:
        source.backup(target)


def named(case: Case) -> Path:
    """Return the metadata file that the catalog names."""
    catalog = open_catalog(case.at)
    return local_path(metadata_location(catalog, ICEBERG) or "")


def land_many(case: Case, commits: int, begin: int = 30) -> int:
    """Land further records one by one, and return the end."""
    app = lander(ICEBERG, case.at, epoch=5)
    app.open()
    for start in range(begin, begin + commits):
        app.land(start, start + 1)
    return begin + commits
