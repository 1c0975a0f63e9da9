"""What a start would refuse of an Iceberg table, the doctor sees by itself: properties, NOT NULL, and a name mapping."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyiceberg.table import Table
from pyiceberg.types import StringType
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import lander, make_table, pipeline_over

from lakebound.errors import TableFeatureError
from lakebound.inspection.doctor.pipeline.ledger_facts import read_ledgers
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

SPEC = TableSpec(format="iceberg", name="shop.orders")
Hand = Callable[[Table], None]


def set_property(name: str, value: str) -> Hand:
    def work(table: Table) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({name: value})

    return work


def require(table: Table) -> None:
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("city", required=True)


def replace_city(table: Table) -> None:
    """Give the name of a column to another one, and the mapping with it."""
    set_property("schema.name-mapping.default", '[{"field-id": 2, "names": ["city"]}]')(table)
    table.refresh()
    with table.update_schema() as update:
        update.rename_column("city", "town")
    table.refresh()
    with table.update_schema() as update:
        update.add_column("city", StringType())


HANDS = {
    "another file format": (set_property("write.format.default", "orc"), "write.format.default", "table-feature"),
    "code": (set_property("write.location-provider.impl", "theirs.Provider"), "write.location-provider.impl", "table-feature"),
    "not null": (require, "NOT NULL on column city", "table-feature"),
    "name mapping": (replace_city, "the column city", "schema-changed"),
}


@pytest.mark.parametrize(("hand", "names", "runbook"), HANDS.values(), ids=HANDS)
def test_the_doctor_sees_what_a_start_would_refuse(at: Places, hand: Hand, names: str, runbook: str) -> None:
    make_table(SPEC, at)
    lander(SPEC, at).land(0, 10)
    assert read_ledgers(pipeline_over(SPEC), at)[0].refusal is None
    hand(foreign_iceberg(SPEC, at))
    with pytest.raises(TableFeatureError):
        lander(SPEC, at).land(10, 20)
    found = read_ledgers(pipeline_over(SPEC), at)[0].refusal
    assert found is not None and names in found.sentence and found.runbook == runbook


def test_what_is_written_rightly_is_no_finding(at: Places) -> None:
    make_table(SPEC, at)
    set_property("write.object-storage.enabled", "true")(foreign_iceberg(SPEC, at))
    assert read_ledgers(pipeline_over(SPEC), at)[0].refusal is None
