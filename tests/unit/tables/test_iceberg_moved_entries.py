"""Entries that are put together as bytes are those that PyIceberg's own writer writes one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriter,
    write_manifest,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from lakebound.tables.iceberg.merging import read_existing, write_deleted, write_existing

SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "city", StringType(), required=False))
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))
ADDED_BY, MOVED_BY = 2**62 + 1, 7


@pytest.fixture
def io() -> FileIO:
    return load_file_io()


@pytest.fixture
def manifest(tmp_path: Path, io: FileIO) -> ManifestFile:
    """A manifest of five files; what is null in it, its snapshot says."""

    def write(writer: ManifestWriter) -> None:
        for number in range(5):
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"/{number}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(None if number == 0 else f"city {number}"),
                record_count=10 + number,
                file_size_in_bytes=1000 + number,
                lower_bounds={1: bytes([number] * 8)},
                split_offsets=[4],
                spec_id=0,
            )
            writer.add(ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, data_file=file))

    written = made(tmp_path / "given.avro", io, write, ADDED_BY)
    written._data[4] = 300  # its snapshot's sequence number
    return written


def made(path: Path, io: FileIO, write: Callable[[ManifestWriter], None], snapshot_id: int = MOVED_BY) -> ManifestFile:
    with write_manifest(2, SPEC, SCHEMA, io.new_output(str(path)), snapshot_id, "gzip") as writer:
        write(writer)
    return writer.to_manifest_file()


@pytest.mark.parametrize("deleted", [False, True])
def test_entries_as_bytes_are_what_pyiceberg_writes(manifest: ManifestFile, tmp_path: Path, io: FileIO, deleted: bool) -> None:
    def as_bytes(writer: ManifestWriter) -> None:
        (write_deleted if deleted else write_existing)(writer, read_existing(writer, manifest, io))

    def one_by_one(writer: ManifestWriter) -> None:
        for entry in manifest.fetch_manifest_entry(io):
            _ = writer.delete(entry) if deleted else writer.existing(entry)

    own, theirs = made(tmp_path / "own.avro", io, as_bytes), made(tmp_path / "theirs.avro", io, one_by_one)
    for one in (own, theirs):
        one._data[4] = 301
    read = [[list(entry._data) for entry in one.fetch_manifest_entry(io, discard_deleted=False)] for one in (own, theirs)]
    assert read[0] == read[1] and len(read[0]) == 5
    assert own._data[2:] == theirs._data[2:], "what the manifest list says of them"


def test_what_is_known_of_an_entry_is_its_files(manifest: ManifestFile, tmp_path: Path, io: FileIO) -> None:
    with write_manifest(2, SPEC, SCHEMA, io.new_output(str(tmp_path / "w.avro")), MOVED_BY, "gzip") as writer:
        found = read_existing(writer, manifest, io)
        write_existing(writer, found)
    assert [(one.path, one.rows, one.size_bytes) for one in found] == [
        (f"/{number}.parquet", 10 + number, 1000 + number) for number in range(5)
    ]
