"""Footers of a Delta table's files in an object store are compared, and each way of reading ``_kafka`` works there."""

from __future__ import annotations

from pathlib import Path

from tests.support.s3.running import S3Server
from tests.support.tables.local_tables import lander, make_table
from tests.support.tables.stored import places_in

from lakebound.spec.table import TableSpec
from lakebound.tables.delta import scan
from lakebound.tables.delta.open import open_delta
from lakebound.tables.misread import ColumnsLook
from lakebound.tables.table import open_table

SPEC = TableSpec(format="delta", name="shop.orders")


def test_columns_of_files_in_a_bucket(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> None:
    at = places_in(s3_server, s3_bucket, tmp_path)
    make_table(SPEC, at)
    for start in (0, 10, 20):
        lander(SPEC, at).land(start, start + 10)
    assert open_table(SPEC, at).misread_columns() == ColumnsLook(3, 3)


def test_each_way_of_reading_where_rows_come_from(s3_server: S3Server, s3_bucket: str, tmp_path: Path) -> None:
    at = places_in(s3_server, s3_bucket, tmp_path)
    make_table(SPEC, at)
    lander(SPEC, at).land(0, 10)
    lander(SPEC, at).land(10, 20)
    folder = at.folder(SPEC)
    handle = open_delta(folder, SPEC.id)
    wanted = open_table(SPEC, at).scan_kafka().sort_by("offset")
    assert wanted["offset"].to_pylist() == list(range(20))
    assert scan._by_query(handle, (), SPEC.id).sort_by("offset") == wanted
    assert scan._by_files(handle, folder).sort_by("offset") == wanted
