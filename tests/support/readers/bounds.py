"""What a table's metadata says of each data file, held against the file's own values. In Python alone.

Imports nothing of what it judges: a Delta log is read as JSON, Iceberg's manifests by PyIceberg, and bounds by ``struct``.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable
from pyiceberg.types import PrimitiveType

from tests.support.readers.tables import Leaf
from tests.support.tables.delta_oracle import added_delta_files

_EPOCH = datetime.datetime(1970, 1, 1)
_LAST_MILLISECOND = "9999-12-31T23:59:59.999"


def delta_wrongs(folder: Path, leaves: Sequence[Leaf], partition_by: Sequence[str]) -> tuple[int, list[str]]:
    """Return how many statements a table's log makes of the leaves of all files that it ever had, and which are wrong."""
    checked, wrong = 0, list[str]()
    for file in added_delta_files(folder):
        rows = _rows(file.path)
        stats = file.statistics
        if stats["numRecords"] != len(rows):
            wrong.append(f"{file.path.name}: numRecords {stats['numRecords']}")
        for leaf in _held(leaves, rows):
            values = [leaf.of(row) for row in rows]
            told = f"{file.path.name} {leaf.path}"
            if leaf.path[0] in partition_by:
                checked += 1
                if {_partition_text(value) for value in values} != {file.partition[leaf.path[0]]}:
                    wrong.append(f"{told}: partition {file.partition[leaf.path[0]]!r} of {values!r}")
                continue
            low, high = _at(stats["minValues"], leaf), _at(stats["maxValues"], leaf)
            checked += (low is not None) + (high is not None) + 1
            if _at(stats["nullCount"], leaf) != values.count(None):
                wrong.append(f"{told}: nullCount {_at(stats['nullCount'], leaf)!r} of {values!r}")
            wrong += [f"{told}: {problem}" for problem in _delta_problems(values, low, high)]
    return checked, wrong


def iceberg_wrongs(table: IcebergTable, leaves: Sequence[Leaf]) -> tuple[int, list[str]]:
    """Return how many statements the manifests of all snapshots make of the leaves of their files, and which are wrong."""
    checked, wrong, seen = 0, list[str](), set[str]()
    ids = dict(table.schema()._name_to_id)
    for snapshot in table.snapshots():
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False):
                file = entry.data_file
                if file.file_path in seen:
                    continue
                seen.add(file.file_path)
                rows = _rows(Path("/" + file.file_path.removeprefix("file:").lstrip("/")))
                if file.record_count != len(rows):
                    wrong.append(f"{file.file_path}: record_count {file.record_count}")
                for leaf in _held(leaves, rows):
                    field_id = ids[".".join(leaf.path)]
                    problems, statements = _iceberg_problems(file, table, field_id, [leaf.of(row) for row in rows])
                    checked += statements
                    wrong += [f"{file.file_path} {leaf.path}: {problem}" for problem in problems]
    return checked, wrong


def _rows(path: Path) -> list[dict[str, Any]]:
    """Return a file's rows; what its path says is no column."""
    with pq.ParquetFile(path) as file:
        rows: list[dict[str, Any]] = file.read().to_pylist()
    return rows


def _held(leaves: Sequence[Leaf], rows: Sequence[dict[str, Any]]) -> Iterator[Leaf]:
    """Yield the leaves that have bounds and that a file holds: what was added later it has not."""
    yield from (leaf for leaf in leaves if leaf.kind is not None and rows and leaf.path[0] in rows[0])


def _at(tree: dict[str, Any], leaf: Leaf) -> Any:
    for name in leaf.path:
        tree = tree.get(name) if isinstance(tree, dict) else None  # type: ignore[assignment]
    return tree


def _delta_problems(values: Sequence[Any], low: Any, high: Any) -> Iterator[str]:
    has_nan = any(value != value for value in values)
    known = [_comparable(value) for value in values if value is not None and value == value]
    if has_nan and high is not None:
        yield f"an upper bound {high!r} beside NaN"
    if low is not None and not all(_told(low, value) <= value for value in known):
        yield f"lower bound {low!r} of {known!r}"
    if high is not None and not all(value <= _widened(high, value) for value in known):
        yield f"upper bound {high!r} of {known!r}"
    if -0.0 in known and any(isinstance(value, float) for value in known):
        for bound, sign in ((low, -1.0), (high, 1.0)):
            if bound is not None and float(bound) == 0.0 and math.copysign(1.0, float(bound)) != sign:
                yield f"bound {bound!r} leaves one of the zeros out"


def _comparable(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None)
    return value.encode() if isinstance(value, str) else value


def _told(bound: Any, value: Any) -> Any:
    """Return a bound of a Delta log as a value of the type of another one."""
    if isinstance(value, bytes):
        return bound.encode()
    if isinstance(value, datetime.datetime):
        return datetime.datetime.fromisoformat(bound).replace(tzinfo=None)
    if isinstance(value, datetime.date):
        return datetime.date.fromisoformat(bound)
    if isinstance(value, float):
        return float(bound)
    return bound


def _widened(bound: Any, value: Any) -> Any:
    """Return an upper bound; to the last millisecond that can be written readers add one."""
    told = _told(bound, value)
    if isinstance(value, datetime.datetime) and bound.startswith(_LAST_MILLISECOND):
        return datetime.datetime.max
    return told


def _partition_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, float) and value == 0.0:
        return "0.0"
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return str(value)


def _iceberg_problems(file: DataFile, table: IcebergTable, field_id: int, values: Sequence[Any]) -> tuple[list[str], int]:
    problems = []
    kind = table.schema().find_type(field_id)
    assert isinstance(kind, PrimitiveType)
    known = [_comparable(value) for value in values if value is not None and value == value]
    low, high = ((told or {}).get(field_id) for told in (file.lower_bounds, file.upper_bounds))
    nulls = (file.null_value_counts or {}).get(field_id)
    if nulls is not None and nulls != values.count(None):
        problems.append(f"{nulls} nulls of {values!r}")
    has_nan = any(value != value for value in values)
    nans = (file.nan_value_counts or {}).get(field_id)
    if nans is not None and (nans > 0) != has_nan:
        problems.append(f"{nans} NaN of {values!r}")
    if low is not None and not all(_decoded(low, value) <= value for value in known):
        problems.append(f"lower bound {low!r} of {known!r}")
    if high is not None and not all(value <= _decoded(high, value) for value in known):
        problems.append(f"upper bound {high!r} of {known!r}")
    return problems, sum(one is not None for one in (low, high, nulls, nans))


def _decoded(bound: bytes, value: Any) -> Any:
    """Return a bound of a manifest: https://iceberg.apache.org/spec/#binary-single-value-serialization."""
    if isinstance(value, bytes):
        return bound
    if isinstance(value, bool):
        return bound != b"\x00"
    if isinstance(value, int):
        return int.from_bytes(bound, "little", signed=True)
    if isinstance(value, float):
        return struct.unpack("<f" if len(bound) == 4 else "<d", bound)[0]
    if isinstance(value, Decimal):
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        unscaled = int.from_bytes(bound, "big", signed=True)
        return Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), exponent))
    number = int.from_bytes(bound, "little", signed=True)
    if isinstance(value, datetime.datetime):
        return _EPOCH + datetime.timedelta(microseconds=number)
    return (_EPOCH + datetime.timedelta(days=number)).date()
