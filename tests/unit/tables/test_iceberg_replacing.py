"""A replacement of files that fails says why, and leaves nothing open and nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import OutputStream, load_file_io
from pyiceberg.io.pyarrow import PyArrowFile
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadataV3, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

from lakebound.storage.location import Location
from lakebound.tables.datafiles import write_data_files
from lakebound.tables.iceberg import append, live_files
from lakebound.tables.iceberg.attempts import Attempts
from lakebound.tables.iceberg.field_ids import with_ids
from lakebound.tables.iceberg.live_files import KnownManifests
from lakebound.tables.iceberg.merging import MERGED_AT_ONCE
from lakebound.tables.iceberg.replacing import NotReplaceableError, replace_files
from lakebound.tables.layout import FileLayout
from lakebound.tables.table import DataFile as WrittenFile

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
    found = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path.as_uri(),
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=100,
    )
    found.spec_id = 0
    return found


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


@pytest.fixture
def rewritten(table: Table, tmp_path: Path) -> list[WrittenFile]:
    """A file of the partitioning that the table has at first."""
    columns = with_ids(pa.schema([("id", pa.int64())]), table.schema())
    layout = FileLayout("iceberg:shop.orders", "iceberg", Location(str(tmp_path / "data")), (), columns)
    return write_data_files(pa.table({"id": pa.array([1], pa.int64())}), layout, "compacted")


def become_another(table: Table, change: str) -> None:
    """Change a table so that files which were written before do not fit it."""
    if change == "partitioning":
        with table.update_spec() as specs:
            specs.add_identity("id")
    else:
        # PyIceberg 0.12 reads version 3, and does not upgrade to it.
        table.metadata = TableMetadataV3.model_validate({**table.metadata.model_dump(by_alias=True), "format-version": 3})


@pytest.mark.parametrize("is_replaced", [False, True])
@pytest.mark.parametrize(
    ("change", "reason"),
    [("format version 3", "it has format version 3 now"), ("partitioning", "its partitioning was changed meanwhile")],
)
def test_a_table_that_became_another_one_is_told_as_such_unless_it_has_the_files(
    table: Table, tmp_path: Path, rewritten: list[WrittenFile], change: str, reason: str, is_replaced: bool
) -> None:
    gone, known = {(tmp_path / "0.parquet").as_uri()}, KnownManifests()
    if is_replaced:
        replace_files(table, gone, rewritten, {}, "shop.orders", known, Attempts())
    become_another(table, change)
    before = set((tmp_path / "metadata").iterdir())
    with pytest.raises(NotReplaceableError, match="they are in it already" if is_replaced else reason) as raised:
        replace_files(table, gone, rewritten, {}, "shop.orders", known, Attempts())
    assert raised.value.is_replaced is is_replaced and set((tmp_path / "metadata").iterdir()) == before
