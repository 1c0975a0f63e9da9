"""Existing tables follow the pipeline's columns at a start, or nothing is changed and a finding says why."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.oracle import read_delta, read_iceberg
from tests.support.tables import local_tables
from tests.support.tables.local_tables import SCHEMA, lander, make_table
from tests.support.worlds.said_findings import read_findings

from lakebound.control.folder import ControlFolder
from lakebound.errors import LeaseLostError, SchemaChangedError
from lakebound.landing.table_settling import Settled, check_settled, compare_tables, settle_tables
from lakebound.ledger.entry import Entry, new_commit_id
from lakebound.operations.release.reading import read_records
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.fitting import fit_rows
from lakebound.tables.places import Places
from lakebound.tables.table import Table, open_table
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA

ITEM = pa.struct([pa.field("sku", pa.string()), pa.field("quantity", pa.int32()), pa.field("gift", pa.bool_())])


def pipeline(**changes: Any) -> PipelineSpec:
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": "id BIGINT, city STRING, note STRING"},
        "freshness": "1s",
        "schema_evolution": "add_columns",
        "tables": [{"format": name, "name": "shop.orders"} for name in ("delta", "iceberg")],
    }
    return PipelineSpec.model_validate(body | changes)


def changed(**columns: pa.DataType | None) -> pa.Schema:
    """Return the tables' columns with some of them changed, dropped (None) or new."""
    fields = {field.name: field.type for field in SCHEMA} | columns
    return pa.schema([pa.field(name, kind) for name, kind in fields.items() if kind is not None])


def both(schema: pa.Schema) -> Mapping[str, pa.Schema]:
    return {f"{name}:shop.orders": schema for name in ("delta", "iceberg")}


def settle(spec: PipelineSpec, at: Places, wanted: Mapping[str, pa.Schema], value_fields: Sequence[str] = ()) -> Settled:
    """Settle as an application that holds the lease."""
    return settle_tables(spec, at, wanted, value_fields, own_epoch=1, check_lease=lambda: None)


@pytest.fixture
def tables(at: Places) -> list[Table]:
    """A table of each format with ten rows, and what the stream said of them."""
    made = [make_table(one, at) for one in pipeline().tables]
    for table in made:
        lander(table.spec, at).land(0, 10)
    return made


def rows_of(at: Places, name: str) -> list[dict[str, Any]]:
    """Return a table's rows as the oracle reads them."""
    found = (
        read_delta(at.root.path / "delta" / "shop" / "orders")
        if name == "delta"
        else read_iceberg(at.root.path / "iceberg" / "catalog.db", "shop", "orders")
    )
    rows: list[dict[str, Any]] = found.sort_by("id").to_pylist()
    return rows


def land(spec: PipelineSpec, at: Places, schema: pa.Schema, start: int, **values: Any) -> None:
    """Land five rows with the new columns in every table, as the application does after it has settled."""
    for one in spec.tables:
        own = lander(one, at)
        body = [{**row, **values} for row in local_tables.rows(start, start + 5).to_pylist()]
        rows = pa.Table.from_pylist(body, schema=own.table.schema())
        assert set(schema.names) <= set(rows.column_names)
        own.land(start, start + 5, write_data_files(rows, own.table.layout(), f"new-{start}"))


def test_new_columns_are_added_and_old_rows_have_nulls(at: Places, tables: list[Table]) -> None:
    spec, wanted = pipeline(), changed(note=pa.string(), items=pa.list_(ITEM), price=pa.decimal128(10, 2))
    entries = [table.read_ledger().entry for table in tables]
    settled = settle(spec, at, both(wanted))
    assert all(len(plan.columns.additions) == 3 for plan in settled.plans.values())
    for table, before in zip(tables, entries, strict=True):
        after = open_table(table.spec, at)
        assert after.read_ledger().entry == before, "the entry that counts is the stream's, not the carried one"
        assert set(after.schema().names) == {*SCHEMA.names, "note", "price"}
    land(spec, at, wanted, 10, note="here", items=[{"sku": "s", "quantity": 1, "gift": True}])
    for name in ("delta", "iceberg"):
        rows = rows_of(at, name)
        assert [row["note"] for row in rows] == [None] * 10 + ["here"] * 5
        assert [row["items"][0]["gift"] for row in rows] == [None] * 10 + [True] * 5
        assert [row["id"] for row in rows] == list(range(15))
    assert not any(plan.is_change for plan in settle(spec, at, both(wanted)).plans.values()), "once is enough"


def test_the_log_carries_the_entry_on(at: Places, tables: list[Table]) -> None:
    settle(pipeline(), at, both(changed(note=pa.string())))
    newest = next(open_table(pipeline().tables[0], at).entries()).entry
    expected = tables[0].read_ledger().entry
    assert isinstance(expected, Entry)
    assert (newest.kind, newest.coverage, newest.epoch) == ("carry", expected.coverage, expected.epoch)
    handle = DeltaTable(str(at.root.path / "delta" / "shop" / "orders"))
    assert handle.history(1)[0]["operation"] == "ADD COLUMN"


def test_a_handle_of_before_lands_what_it_has_and_reads_the_new_columns(at: Places, tables: list[Table]) -> None:
    """A replay that runs beside the start may still write files without the new column."""
    owns = [lander(table.spec, at) for table in tables]
    files = [own.write(10, 15) for own in owns]
    settle(pipeline(), at, both(changed(note=pa.string())))
    for own, written in zip(owns, files, strict=True):
        own.land(10, 15, written)
    for name in ("delta", "iceberg"):
        assert [row["note"] for row in rows_of(at, name)] == [None] * 15


def test_iceberg_widens_and_delta_says_that_it_cannot(at: Places, tables: list[Table]) -> None:
    wide = pa.list_(pa.struct([pa.field("sku", pa.string()), pa.field("quantity", pa.int64())]))
    wanted = changed(items=wide, note=pa.string())
    with pytest.raises(SchemaChangedError, match=r"items\.element\.quantity is INT in the table.*typeWidening") as caught:
        settle(pipeline(), at, both(wanted))
    assert "iceberg:shop.orders" not in str(caught.value) and "runbook schema-changed" in str(caught.value)
    for table in tables:
        assert open_table(table.spec, at).schema() == table.schema(), "no table was changed while one forbids"
    only = pipeline(tables=[{"format": "iceberg", "name": "shop.orders"}])
    settle(only, at, {"iceberg:shop.orders": wanted})
    land(only, at, wanted, 10, items=[{"sku": "s", "quantity": 2**40}])
    assert [row["items"][0]["quantity"] for row in rows_of(at, "iceberg")] == [1] * 10 + [2**40] * 5


def test_a_removed_column_stays_and_gets_nulls(at: Places, tables: list[Table]) -> None:
    settled = settle(pipeline(), at, both(changed(city=None)))
    assert [plan.columns.unfilled for plan in settled.plans.values()] == [("city",)] * 2
    for table in tables:
        own = lander(table.spec, at)
        rows = local_tables.rows(10, 15).drop_columns("city")
        own.land(10, 15, write_data_files(rows, table.layout(), "less"))
    for name in ("delta", "iceberg"):
        assert [row["city"] for row in rows_of(at, name)][10:] == [None] * 5


def test_another_type_is_a_finding_and_its_end_is_its_end(at: Places, tables: list[Table]) -> None:
    spec, control = pipeline(), ControlFolder(at.home, "orders")
    wanted = {"delta:shop.orders": changed(city=pa.int64(), note=pa.string()), "iceberg:shop.orders": changed(note=pa.string())}
    with pytest.raises(SchemaChangedError, match="city is STRING in the table, BIGINT in the pipeline"):
        settle(spec, at, wanted)
    assert [table.schema() for table in tables] == [open_table(table.spec, at).schema() for table in tables]
    (said,) = read_findings(control)
    (finding,) = said.findings
    assert (said.source, finding.cause, finding.runbook) == ("schema", "schema of delta:shop.orders", "schema-changed")
    assert list(finding.evidence) == ["difference 1"] and finding.severity == "critical"
    settle(spec, at, both(changed(note=pa.string())))
    assert read_findings(control)[0].findings == ()


@pytest.mark.parametrize("policy", ["quarantine", "ignore"])
def test_a_column_that_is_not_wanted_leaves_the_tables_as_they_are(at: Places, tables: list[Table], policy: str) -> None:
    spec = pipeline(schema_evolution=policy)
    settled = settle(spec, at, both(changed(note=pa.string())), ["id", "city", "note"])
    assert settled.unhoused == ({"note"} if policy == "quarantine" else set())
    assert [table.schema() for table in tables] == [open_table(table.spec, at).schema() for table in tables]


def test_who_lands_beside_the_stream_waits_for_its_start(at: Places, tables: list[Table]) -> None:
    spec, wanted = pipeline(), both(changed(note=pa.string()))
    with pytest.raises(SchemaChangedError, match="next start: restart it first: `lakebound control orders restart`"):
        check_settled(spec, at, wanted)
    settle(spec, at, wanted)
    assert check_settled(spec, at, wanted).unhoused == frozenset()


def test_looking_makes_and_changes_nothing(at: Places, tmp_path: Path) -> None:
    assert all(plan.is_new for plan in compare_tables(pipeline(), at, both(SCHEMA)).plans.values())
    assert not list(at.root.path.rglob("*"))
    assert read_findings(ControlFolder(at.home, "orders")) == []


def test_cut_short_between_two_tables_the_next_start_goes_on(
    at: Places, tables: list[Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakebound.tables.iceberg.table import IcebergTable

    class CutShortError(Exception):
        """Stands for a kill."""

    def cut_short(*_: object) -> None:
        raise CutShortError

    wanted = both(changed(note=pa.string()))
    with monkeypatch.context() as patch, pytest.raises(CutShortError):
        patch.setattr(IcebergTable, "change_schema", cut_short)
        settle(pipeline(), at, wanted)
    assert [len(plan.columns.additions) for plan in compare_tables(pipeline(), at, wanted).plans.values()] == [0, 1]
    settle(pipeline(), at, wanted)
    land(pipeline(), at, wanted["delta:shop.orders"], 10, note="x")


def partitioned(at: Places) -> PipelineSpec:
    """Return a pipeline whose Iceberg table is partitioned by the day, with both tables made."""
    delta, iceberg = ({"format": name, "name": "shop.days"} for name in ("delta", "iceberg"))
    spec = pipeline(tables=[delta, {**iceberg, "partition_by": ["day(at)"]}])
    for one in spec.tables:
        make_table(one, at)
    return spec


def test_the_name_of_a_partition_field_is_refused_before_any_table_is_touched(at: Places) -> None:
    spec = partitioned(at)
    wanted = {one.id: changed(at_day=pa.date32()) for one in spec.tables}
    with pytest.raises(SchemaChangedError, match=r"iceberg:shop.days: column at_day .* partition field of this name"):
        settle(spec, at, wanted)
    assert [open_table(one, at).schema() for one in spec.tables] == [SCHEMA, SCHEMA]
    assert [finding.cause for finding in read_findings(ControlFolder(at.home, "orders"))[0].findings] == [
        "schema of iceberg:shop.days"
    ]


@pytest.mark.parametrize("is_new", [True, False], ids=["new tables", "existing tables"])
@pytest.mark.parametrize(
    ("columns", "refused"),
    [
        ({"net amount": pa.string()}, {"delta:shop.days": "net amount.* has a character that Delta's readers refuse"}),
        (
            {"note": pa.string(), "Note": pa.string()},
            dict.fromkeys(("delta:shop.days", "iceberg:shop.days"), "Note.* differs from note by upper and lower case only"),
        ),
    ],
    ids=["character", "case"],
)
def test_a_name_is_refused_in_a_new_table_and_in_an_existing_one(
    at: Places, columns: dict[str, pa.DataType], refused: dict[str, str], is_new: bool
) -> None:
    spec = pipeline(tables=[{"format": name, "name": "shop.days"} for name in ("delta", "iceberg")])
    made = [] if is_new else [make_table(one, at) for one in spec.tables]
    wanted = {one.id: changed(**columns) for one in spec.tables}
    found = compare_tables(spec, at, wanted).differences
    assert sorted(found) == sorted(refused)
    assert all(re.search(text, found[table][0]) for table, text in refused.items()), found
    with pytest.raises(SchemaChangedError):
        settle(spec, at, wanted)
    assert [table.schema() for table in made] == [SCHEMA] * len(made)
    assert not is_new or not any(open_table(one, at).exists() for one in spec.tables)


def test_a_partitioning_that_the_yaml_no_longer_says_is_refused(at: Places) -> None:
    spec = partitioned(at)
    unnamed = pipeline(tables=[one.model_copy(update={"partition_by": ()}).model_dump() for one in spec.tables[1:]])
    with pytest.raises(SchemaChangedError, match=r"write partition_by: \[day\(at\)\], or land into a new table"):
        settle(unnamed, at, {"iceberg:shop.days": changed(note=pa.string())})


def test_who_lost_the_lease_alters_no_table_and_leaves_the_findings_alone(at: Places, tables: list[Table]) -> None:
    def lost() -> None:
        raise LeaseLostError("orders", 1, 2)

    for wanted in (changed(note=pa.string()), changed(city=pa.int64())):
        with pytest.raises(LeaseLostError):
            settle_tables(pipeline(), at, both(wanted), own_epoch=1, check_lease=lost)
    assert [open_table(table.spec, at).schema() for table in tables] == [table.schema() for table in tables]
    assert read_findings(ControlFolder(at.home, "orders")) == []


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_a_table_that_a_later_application_has_opened_is_not_altered(at: Places, tables: list[Table], name: str) -> None:
    """It woke up after its last look at the lease."""
    one = next(table.spec for table in tables if table.spec.format == name)
    lander(one, at, epoch=2).open()
    with pytest.raises(LeaseLostError, match="epoch 1 was superseded by epoch 2"):
        settle(pipeline(tables=[one.model_dump()]), at, {one.id: changed(note=pa.string())})
    assert "note" not in open_table(one, at).schema().names


BEFORE_HEADERS = pa.schema([field for field in QUARANTINE_SCHEMA if field.name != "headers"])
OFFSETS = {("orders", local_tables.TOPIC_ID, 0): np.array([0, 1, 2])}


def put_bad(one: TableSpec, at: Places, offset: int, schema: pa.Schema) -> None:
    """Put a bad record into a quarantine, with the columns that a version of Lakebound gives it."""
    own = lander(one, at)
    kafka = local_tables.rows(offset, offset + 1)["_kafka"][0].as_py()
    body = {"_kafka": kafka, "reason": "not_utf8", "error": "e", "key": b"k", "value": b"v"}
    row = pa.Table.from_pylist([body | {"headers": [{"name": "n", "value": None}]}], schema=schema)
    own.land(offset, offset + 1, write_data_files(fit_rows(row, own.table.schema()), own.table.layout(), f"bad-{offset}"))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_quarantine_from_before_headers_gets_the_column_and_an_earlier_version_goes_on(at: Places, kind: str) -> None:
    spec = pipeline(quarantine={"format": kind, "name": "quarantine.orders"}, schema_evolution="refuse")
    one = spec.quarantine_table
    open_table(one, at).create(BEFORE_HEADERS, Entry(kind="genesis", pipeline="orders", epoch=1, commit=new_commit_id()))
    put_bad(one, at, 0, BEFORE_HEADERS)
    assert read_records(one, at, OFFSETS)["headers"].to_pylist() == [None], "before the next start it is read, too"

    (plan,) = settle(spec, at, {one.id: QUARANTINE_SCHEMA}).plans.values()
    assert [addition.path for addition in plan.columns.additions] == [("headers",)]
    put_bad(one, at, 1, QUARANTINE_SCHEMA)
    (plan,) = settle(spec, at, {one.id: BEFORE_HEADERS}).plans.values()
    assert not plan.is_change and plan.columns.unfilled == ("headers",), "an earlier version goes on"
    put_bad(one, at, 2, BEFORE_HEADERS)
    found = read_records(one, at, OFFSETS).sort_by("offset")
    headers = [one or None for one in found["headers"].to_pylist()]  # PyIceberg 0.12.0 reads a null list as an empty one
    assert headers == [None, [{"name": "n", "value": None}], None]
