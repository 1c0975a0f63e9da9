"""Tables of both formats remember which code made their rows, through commits of maintenance and a change of the code."""

from __future__ import annotations

import pytest
from tests.support.tables.local_tables import TOPIC, offsets, rows

from lakebound.ledger.entry import Entry, carried, high_water_marks, new_commit_id
from lakebound.ledger.source_ranges import landed_by
from lakebound.ledger.sources import Source
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from lakebound_spark.batch.targets import Counts, Target, Writer

pytestmark = pytest.mark.local


def writer(epoch: int, name: str) -> Writer:
    return Writer("orders", epoch, lambda: None, attempts=3, source=Source(hash=name, revision="abc"))


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_table_says_which_code_landed_what(table_format: str, at: Places) -> None:
    spec = TableSpec(format=table_format, name="shop.orders")  # type: ignore[arg-type]
    table = open_table(spec, at)
    table.create(rows(0, 0).schema, Entry(kind="genesis", pipeline="orders", epoch=0, commit=new_commit_id()))
    landed = 0
    for epoch, (name, count) in enumerate([("a", 4), ("a", 2), ("bad", 0), ("b", 5)], 1):
        target = Target(open_table(spec, at), open_table(spec, at).read_ledger())
        target.commit(writer(epoch, name), {}, Counts(), [], kind="open")
        if count:
            files = write_data_files(rows(landed, landed + count), target.table.layout(), f"batch-{epoch}")
            done = Counts(read=count, landed=count, rows=count)
            target.commit(writer(epoch, name), offsets(landed, landed + count), done, files)
            landed += count
        table = open_table(spec, at)
        newest = table.read_ledger().entry
        assert newest is not None and carried(newest).sources == newest.sources
    assert newest is not None and high_water_marks(newest.coverage) == {TOPIC: {0: landed}}
    found = [(one.hash if one else None, held) for one, held in landed_by(newest.sources, newest.coverage)]
    assert found == [("a", offsets(0, 6)), ("b", offsets(6, 11))]
    assert {one.revision for one in newest.sources} == {"abc"}
