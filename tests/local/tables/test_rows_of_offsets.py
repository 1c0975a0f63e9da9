"""The rows of some offsets are read from the files that have them, in tables of both formats."""

from __future__ import annotations

import pytest
from tests.support.tables.local_tables import Lander, genesis, rows

from lakebound.spec.table import TableSpec
from lakebound.tables.contents import Selection, contents_of
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

pytestmark = pytest.mark.local


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("by", [(), ("city",)])
def test_files_of_other_offsets_are_not_read(table_format: str, by: tuple[str, ...], at: Places) -> None:
    spec = TableSpec.model_validate({"format": table_format, "name": "shop.orders", "partition_by": by})
    table = open_table(spec, at)
    table.create(rows(0, 0).schema, genesis())
    lander = Lander(table, table.read_ledger())
    lander.open()
    written = {start: lander.write(start, start + 10) for start in range(0, 50, 10)}
    for start, files in written.items():
        lander.land(start, start + 10, files)
    for start in (0, 10, 40):
        for file in written[start]:
            file.path.path.write_bytes(b"no Parquet: whoever reads it fails")
    found = [
        one
        for batch in contents_of(spec, at).rows(Selection((), ["id", "city", "_kafka"], offsets=(25, 33)))
        for one in batch.to_pylist()
    ]
    assert sorted((one["id"], one["city"], one["_kafka"]["offset"]) for one in found) == [
        (offset, f"city {offset % 3}", offset) for offset in range(25, 34)
    ]
