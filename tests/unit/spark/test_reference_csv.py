"""CSV files as reference data: what is wrong with one is said by the file and the column, and no value is repeated."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lakebound_spark.reference.csv_files import rows_of
from lakebound_spark.reference.loaded import UnusableReferenceError

TYPES = {"device_id": pa.string(), "floor": pa.int32()}
SECRET = "secret-value"


def read(folder: Path, text: str | bytes, types: dict[str, pa.DataType]) -> pa.Table:
    file = folder / "devices.csv"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return rows_of(file, types)


def test_declared_columns_are_read_and_times_are_in_utc(tmp_path: Path) -> None:
    text = 'note,device_id,floor,since\nx,"",3,2024-01-01 00:00:00\ny,,,\n'
    rows = read(tmp_path, text, {**TYPES, "since": pa.timestamp("us")})
    assert rows.schema.field("since").type == pa.timestamp("us", "UTC")
    assert rows.drop_columns("since").to_pylist() == [{"device_id": "", "floor": 3}, {"device_id": None, "floor": None}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"note,device_id,floor\nx,d,{SECRET}\n", "column floor of devices.csv has a value that INT cannot hold"),
        ("note,device_id,floor\nx,d,99999999999\n", "column floor of devices.csv has a value that INT cannot hold"),
        (b"note,device_id,floor\nx,\xff\xfe,1\n", "column device_id of devices.csv has a text that is not UTF-8"),
        (f"device_id,floor\nd,1\n{SECRET},2,3\n", "devices.csv is not CSV: .* as many fields as the first"),
        ("", "devices.csv is not CSV: its first line must name the columns"),
        (f"device_id\n{SECRET}\n", "devices.csv lacks a column of its schema"),
    ],
)
def test_what_cannot_be_read_is_told_without_a_value(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(UnusableReferenceError, match=told) as error:
        read(tmp_path, text, TYPES)
    assert SECRET not in str(error.value) and "99999999999" not in str(error.value)
    assert SECRET not in str(error.value.__cause__)
