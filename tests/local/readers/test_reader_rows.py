"""Every reader without a JVM finds, by every predicate, the rows that the predicate finds among the unfiltered ones.

Bounds and partition values of all files are held against the files' values, in Python alone.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.readers.bounds import delta_wrongs, iceberg_wrongs
from tests.support.readers.engines import readers_of
from tests.support.readers.questions import Tally, answered, judge, questions, shapes
from tests.support.readers.tables import Format, Generated, Shape, generate
from tests.support.streams.long_form import READERS_SEED
from tests.support.tables.foreign_hands import foreign_iceberg

from lakebound.tables.places import Places

CASES = [(table_format, shape) for table_format in ("delta", "iceberg") for shape in shapes(table_format, 3)]  # type: ignore[arg-type]
IDS = [f"{table_format}-{shape.name}" for table_format, shape in CASES]
PREDICATES = 8


def statements(table: Generated) -> tuple[int, list[str]]:
    """Return how many statements of the metadata were checked, and which are wrong."""
    leaves = table.stages[2].leaves
    if table.spec.format == "delta":
        return delta_wrongs(table.at.delta_path(table.spec), leaves, table.spec.partition_by)
    return iceberg_wrongs(foreign_iceberg(table.spec, table.at), leaves)


@pytest.mark.parametrize(("table_format", "shape"), CASES, ids=IDS)
def test_every_reader_finds_what_is_there(
    table_format: Format, shape: Shape, at: Places, record_property: Callable[[str, object], None]
) -> None:
    table = generate(shape, table_format, at, READERS_SEED)
    checked, wrong = statements(table)
    assert checked and not wrong, "\n".join(wrong[:20])
    tally = Tally(columns=len(table.stages[2].leaves))
    for stage in table.stages:
        asked = questions(table, stage, PREDICATES)
        for reader in readers_of(table, stage):
            answerable = [one for one in asked if reader.takes_nan or not one.has_nan]
            judge(tally, reader.name, reader.semantics, answered(table, stage, answerable, reader.find))
    for name, value in {"tables": 1, "statements": checked, **tally.properties()}.items():
        record_property(f"readers {name}", value)
    assert tally.queries and not tally.wrong, "\n".join(tally.wrong[:20])
