"""A folder of this machine as a storage: what it promises, asked of the Protocol."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lakebound.errors import NotOnThisMachineError
from lakebound.storage.location import Location, delete_all
from lakebound.storage.race import race
from lakebound.storage.store import FileChangedError


@pytest.fixture
def folder(tmp_path: Path) -> Location:
    return Location(str(tmp_path / "a folder"))


def test_what_is_put_is_read(folder: Location) -> None:
    file = folder / "x" / "it's 100 %.json"
    assert file.describe() is None and not file.exists()
    file.put(b"one")
    file.put(b"two")
    assert file.read() == b"two"
    found = file.describe()
    assert found is not None and found.size_bytes == 3 and found.modified_ms > 0


def test_a_new_file_is_put_once(folder: Location) -> None:
    file = folder / "x"
    file.put_new(b"one")
    with pytest.raises(FileExistsError):
        file.put_new(b"two")
    assert file.read() == b"one"


def test_a_file_is_replaced_only_as_it_was_read(folder: Location) -> None:
    file = folder / "x"
    with pytest.raises(FileChangedError):
        file.replace(b"new", "no tag")
    file.put(b"one")
    tag = file.read_tagged().tag
    next_tag = file.replace(b"two", tag)
    assert file.read_tagged().tag == next_tag
    with pytest.raises(FileChangedError):
        file.replace(b"three", tag)
    assert file.read() == b"two"


def test_a_list_names_files_in_order_and_no_drafts(folder: Location) -> None:
    for name in ("b/2", "a", "b/10", "c"):
        (folder / name).put(name.encode())
    (folder / "a").replace(b"again", (folder / "a").read_tagged().tag)
    assert [location.relative_to(folder) for location, _ in folder.list()] == ["a", "b/10", "b/2", "c"]
    assert [location.relative_to(folder) for location, _ in folder.list(after="b/10")] == ["b/2", "c"]
    assert [location for location, _ in (folder / "nowhere").list()] == []


def test_files_are_uploaded_and_deleted(folder: Location, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(1000))
    (folder / "x").upload(source)
    assert (folder / "x").read() == source.read_bytes()
    delete_all([folder / "x", folder / "not there"])
    (folder / "x").delete()
    assert not (folder / "x").exists()


def test_of_many_writers_one_alone_wins(folder: Location) -> None:
    result = race(folder)
    assert result.is_safe and result.create_rounds == 20 and result.replace_rounds == 10
    assert [location for location, _ in folder.list()] == []


@pytest.mark.parametrize("address", ["/data/lake", "s3://bucket/lake"])
def test_addresses_are_put_together(address: str) -> None:
    table = Location(address) / "delta" / "sales"
    assert str(table) == f"{address}/delta/sales" and table.name == "sales" and str(table.parent) == f"{address}/delta"
    assert table.relative_to(Location(address)) == "delta/sales"
    with pytest.raises(ValueError, match="not below"):
        table.relative_to(Location(address[:-1]))


def test_a_key_is_the_path_in_a_bucket() -> None:
    assert Location("s3://bucket/lake/x").key == "lake/x"
    assert Location("s3://bucket/lake/x").uri == "s3://bucket/lake/x" and Location("/lake/x").uri == "file:///lake/x"
    with pytest.raises(NotOnThisMachineError):
        Location("s3://bucket/lake/x").path  # noqa: B018
