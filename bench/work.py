"""What the rows of each work are, computed from the generator's records by Python alone, and what is wrong with a table's.

Imports nothing of Lakebound: the same rows are asked of every arm.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
from arm_names import Work

Row = tuple[Any, ...]
"""The values of a work's columns, in their order."""

_PLAIN = ("event_id", "device", "value", "kind", "pad")
COLUMNS: dict[Work, tuple[str, ...]] = {
    "plain": _PLAIN,
    "avro": _PLAIN,
    "protobuf": _PLAIN,
    "dirty": _PLAIN,
    "encode": ("event_id", "device", "value", "kind", "part", "pad"),
    "enrich": ("event_id", "device", "value", "kind", "site", "model", "pad"),
}
"""What is compared: everything but where in Kafka a row came from."""

REFERENCE_ROWS = 1000
_FILES_AT_ONCE = 200


def reference_of(device: str) -> tuple[str | None, str | None]:
    """Return site and model of a device; the reference table does not have all of them."""
    number = int(device.rpartition("-")[2])
    return (f"site-{number % 40}", f"model-{number % 7}") if 1 <= number <= REFERENCE_ROWS else (None, None)


def reference_table() -> pa.Table:
    """Return the reference table."""
    devices = [f"device-{number}" for number in range(1, REFERENCE_ROWS + 1)]
    sites, models = zip(*map(reference_of, devices), strict=True)
    return pa.table({"device": devices, "site": sites, "model": models})


def write_reference(folder: Path) -> Path:
    """Write the reference table as ``devices/devices.parquet`` and as ``devices.csv``, without a header; return the latter."""
    (folder / "devices").mkdir(parents=True)
    pq.write_table(reference_table(), folder / "devices" / "devices.parquet")
    csv.write_csv(reference_table(), folder / "devices.csv", csv.WriteOptions(include_header=False, quoting_style="none"))
    return folder / "devices.csv"


def row_of(work: Work, value: bytes) -> Row | None:
    """Return the row that a record gives; None where it gives none, because it is filtered or cannot be decoded."""
    try:
        body = json.loads(value)
    except ValueError:
        return None
    if work == "enrich":
        site, model = reference_of(body["device"])
        return body["event_id"], body["device"], body["value"], body["kind"], site, model, body["pad"]
    if work != "encode":
        return tuple(body[name] for name in _PLAIN)
    if body["value"] <= 36.9:
        return None
    hashed = hashlib.sha256(body["device"].encode()).hexdigest()
    changed = body["value"] * 1.8 + 32.0
    return body["event_id"], hashed, changed, body["kind"].upper(), body["event_id"][6:12], body["pad"]


def rows_of(work: Work, values: Sequence[bytes], sent: int) -> Counter[Row]:
    """Return the rows, with how often each is there, of records that repeat ``values`` in turn.

    Args:
        work: What is done with the records.
        values: The records' values, which differ.
        sent: How many records there are.
    """
    rows: Counter[Row] = Counter()
    for number, value in enumerate(values):
        times = sent // len(values) + (number < sent % len(values))
        row = row_of(work, value)
        if row is not None and times:
            rows[row] += times
    return rows


def kept_share(work: Work, values: Sequence[bytes]) -> float:
    """Return the part of the records that give a row."""
    return sum(row_of(work, value) is not None for value in values) / len(values)


def rows_in(files: Sequence[Path], work: Work) -> Counter[Row]:
    """Return the rows of data files, with how often each is there."""
    columns, rows = list(COLUMNS[work]), Counter[Row]()
    for first in range(0, len(files), _FILES_AT_ONCE):
        parts = [pq.ParquetFile(path).read(columns=columns) for path in files[first : first + _FILES_AT_ONCE]]
        # Where a file has nothing but nulls, its column may have another type.
        plain = [part.select(columns).replace_schema_metadata() for part in parts]
        found = pa.concat_tables(plain, promote_options="permissive")
        counted = found.group_by(columns).aggregate([([], "count_all")]).select([*columns, "count_all"])
        for *row, times in zip(*(column.to_pylist() for column in counted.columns), strict=True):
            rows[tuple(row)] += times
    return rows


@dataclass(frozen=True)
class Checked:
    """A table's rows against those that the sent records give.

    Attributes:
        rows: In the table.
        missing: Rows that should be there and are not.
        surplus: Rows that should not be there: others, or the same twice.
        content: A hash of the distinct rows: two arms with the same one gave the same values.
    """

    rows: int
    missing: int
    surplus: int
    content: str


def checked(found: Mapping[Row, int], expected: Mapping[Row, int]) -> Checked:
    """Compare rows with those that should be there."""
    has, wanted = Counter(found), Counter(expected)
    return Checked(has.total(), (wanted - has).total(), (has - wanted).total(), content_of(has))


def content_of(rows: Iterable[Row]) -> str:
    """Return a hash of the distinct rows, in whatever order."""
    lines = sorted(json.dumps(row) for row in set(rows))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]
