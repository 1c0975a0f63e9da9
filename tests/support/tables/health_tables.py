"""Tables whose health is read in tests: real ones, and what is asked of them."""

from __future__ import annotations

from lakebound.operations.maintenance.reading import read_table_facts
from lakebound.spec.table import TableSpec
from lakebound.tables.health import PartitionFacts, TableFacts
from lakebound.tables.places import Places
from tests.support.tables.local_tables import Lander, lander, make_table

NOW_MS = 1_800_000_000_000


def read(spec: TableSpec, at: Places) -> TableFacts:
    """Return the facts of a table that is there."""
    facts = read_table_facts(spec, at, NOW_MS)
    assert facts is not None
    return facts


def landed(spec: TableSpec, at: Places, batches: int, rows_each: int = 3) -> Lander:
    """Make the table, and return an application that landed so many batches."""
    make_table(spec, at)
    app = lander(spec, at)
    for number in range(batches):
        app.land(number * rows_each, (number + 1) * rows_each)
    return app


def by_name(facts: TableFacts) -> dict[str, PartitionFacts]:
    """Return the partitions by their names."""
    return {partition.name: partition for partition in facts.partitions}
