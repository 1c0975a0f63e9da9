"""Statistics and partition values never keep a commit from being made, whatever the values of its rows are."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from tests.support.tables.local_tables import FIRST_DAY_US, PIPELINE, TOPIC, TOPIC_ID, Lander, genesis, landed_offsets

from lakebound.spec.table import TableSpec
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.places import Places
from lakebound.tables.table import KAFKA_TYPE, open_table

YEAR_55840_US = 1_700_000_000_000 * 1_000_000
"""Epoch milliseconds, taken for seconds."""


def not_utf8() -> pa.Array:
    return pa.array([b"\xff\xfe", b"a\xff", None]).view(pa.string())


VALUES: dict[str, pa.Array] = {
    "times beyond the year 9999": pa.array([YEAR_55840_US, 0, None], pa.timestamp("us", "UTC")),
    "times below the year 1": pa.array([-(2**62), 2**63 - 1, None], pa.timestamp("us")),
    "days beyond the year 9999": pa.array([2**31 - 1, -(2**31), None], pa.int32()).view(pa.date32()),
    "the last character before the surrogates": pa.array([15 * "a" + "\ud7ff" + "tail", "a", None]),
    "the last character": pa.array([40 * "\U0010ffff", 16 * "\ud7ff" + "x", None]),
    "long texts": pa.array([5_000 * "x", 5_000 * "\U0001f600", None]),
    "text that is not UTF-8": not_utf8(),
    "bytes that have no upper bound": pa.array([300 * b"\xff", b"", None]),
    "the longest decimals": pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), None], pa.decimal128(38, 0)),
    "no numbers": pa.array([float("nan"), float("inf"), None]),
    "only no numbers": pa.array([float("nan"), float("nan"), float("nan")], pa.float32()),
    "the ends of a number": pa.array([-(2**63), 2**63 - 1, None]),
}


def land(spec: TableSpec, at: Places, values: pa.Array) -> None:
    table = open_table(spec, at)
    kafka = [
        {"topic": TOPIC, "topic_id": TOPIC_ID, "partition": 0, "offset": offset, "timestamp": FIRST_DAY_US, "ordinal": 0}
        for offset in range(len(values))
    ]
    rows = pa.table({"p": values, "_kafka": pa.array(kafka, KAFKA_TYPE)})
    table.create(rows.schema, genesis())
    app = Lander(table, table.read_ledger(), attempts=1)
    app.land(0, len(values), write_data_files(rows, table.layout(), PIPELINE))
    assert landed_offsets(open_table(spec, at)) == list(range(len(values)))


@pytest.mark.parametrize("name", VALUES)
def test_a_commit_is_made(spec: TableSpec, at: Places, name: str) -> None:
    land(spec, at, VALUES[name])


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("p", pa.array([5_000 * "x", 256 * "y", "/", "..", "a=b", "\x00", None])),
        ("truncate(300, p)", pa.array([5_000 * "x", 256 * "\U0001f600", "/"])),
        ("truncate(16, p)", pa.array([15 * "a" + "\ud7ff" + "tail", 40 * "\U0010ffff"])),
        ("truncate(10, p)", pa.array([-(2**63) + 8, 2**63 - 1, -1, 0, None])),
        ("day(p)", pa.array([-62_135_596_800_000_000, 253_402_300_799_999_999, -1, None], pa.timestamp("us", "UTC"))),
        ("year(p)", pa.array([-719_162, 2_932_896, None], pa.int32()).view(pa.date32())),
        ("p", pa.array([Decimal("9" * 38), Decimal("-" + "9" * 38), None], pa.decimal128(38, 0))),
    ],
    ids=["long texts", "long prefixes", "characters", "numbers", "days", "years", "decimals"],
)
def test_a_commit_of_a_partitioned_table_is_made(at: Places, field: str, values: pa.Array) -> None:
    land(TableSpec(format="iceberg", name="shop.values", partition_by=(field,)), at, values)
    if field == "p":
        land(TableSpec(format="delta", name="shop.values", partition_by=("p",)), at, values)


@pytest.mark.parametrize("values", [VALUES["no numbers"], pa.array([0.0, -0.0, float("-inf"), None])], ids=["NaN", "zeros"])
def test_a_delta_table_may_be_partitioned_by_any_number(at: Places, values: pa.Array) -> None:
    land(TableSpec(format="delta", name="shop.values", partition_by=("p",)), at, values)
