"""A replacement that fails while it reads manifests says why, and has nothing open; PyIceberg alone reads what there was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import OutputStream, load_file_io
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from lakebound.tables.iceberg import append, live_files
from lakebound.tables.iceberg.attempts import Attempts
from lakebound.tables.iceberg.live_files import KnownManifests
from lakebound.tables.iceberg.merging import MERGED_AT_ONCE
from lakebound.tables.iceberg.replacing import replace_files

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False))


class Catalog(NoopCatalog):
    """Commits whatever it is asked to, in memory."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        changed = update_table_metadata(table.metadata, updates)
        return CommitTableResponse.model_validate({"metadata": changed, "metadata-location": table.metadata_location})


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table of as many manifests as are merged by the next append, a file in each."""
    made = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, tmp_path.as_uri(), {"format-version": "2"}
    )
    (tmp_path / "metadata").mkdir()
    handle = Table(("shop", "orders"), made, f"{tmp_path.as_uri()}/v1.metadata.json", load_file_io(), Catalog("memory"))
    for number in range(MERGED_AT_ONCE):
        append.append(handle, [file(tmp_path / f"{number}.parquet")], {})
    return handle


def file(path: Path) -> DataFile:
    path.touch()
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path.as_uri(),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=100,
        spec_id=0,
    )


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[OutputStream]:
    """Whatever is opened from now on to be written."""
    streams = []

    def create(self: PyArrowFile, overwrite: bool = False) -> OutputStream:
        streams.append(original(self, overwrite))
        return streams[-1]

    original = PyArrowFile.create
    monkeypatch.setattr(PyArrowFile, "create", create)
    return streams


@pytest.mark.parametrize("error", [OSError("503: the store is busy"), KeyboardInterrupt("^C"), SystemExit(143)])
@pytest.mark.parametrize("by", ["a replacement", "an append that merges"])
def test_a_manifest_that_cannot_be_read_is_said_as_it_is(
    table: Table,
    tmp_path: Path,
    opened: list[OutputStream],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    by: str,
) -> None:
    def unreadable(*_: Any) -> Any:
        raise error

    for module in (append, live_files):
        monkeypatch.setattr(module, "read_existing", unreadable)
    before = set((tmp_path / "metadata").iterdir())
    with pytest.raises(type(error)) as raised:
        if by == "a replacement":
            gone = (tmp_path / "0.parquet").as_uri()
            replace_files(table, {gone}, [], {}, "shop.orders", KnownManifests(), Attempts())
        else:
            append.append(table, [], {})
    assert raised.value is error
    assert opened and all(stream.closed for stream in opened)  # type: ignore[attr-defined]
    if by == "a replacement":
        assert set((tmp_path / "metadata").iterdir()) == before


def test_what_failed_first_is_said_where_the_file_cannot_be_closed_either(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: Any) -> Any:
        raise first

    def full(self: AvroOutputFile[Any], *_: Any) -> None:
        self.output_stream.close()
        raise OSError("the disk is full")

    first = OSError("503: the store is busy")
    monkeypatch.setattr(live_files, "read_existing", unreadable)
    monkeypatch.setattr(AvroOutputFile, "__exit__", full)
    with pytest.raises(OSError, match="503") as raised:
        replace_files(table, {(tmp_path / "0.parquet").as_uri()}, [], {}, "shop.orders", KnownManifests(), Attempts())
    assert raised.value is first
