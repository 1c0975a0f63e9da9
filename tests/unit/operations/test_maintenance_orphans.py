"""Which files are orphans: decided without any."""

from __future__ import annotations

import pytest

from lakebound.operations.maintenance.orphans import (
    ListedFile,
    NothingRecognisedError,
    StrangeReferenceError,
    is_scanned,
    orphans,
    relative_path,
)

FOLDERS = ("/lake/shop/orders", "/mnt/disk1/orders")


def file(path: str, modified_ms: int = 0) -> ListedFile:
    return ListedFile(path, 10, modified_ms)


def found(listed: list[ListedFile], referenced: set[str], older_than_ms: int = 100) -> list[str]:
    taken = orphans(listed, frozenset(referenced), older_than_ms, table="t", folder="/f")
    return [one.path for one in taken]


def test_only_old_files_that_nobody_names_are_orphans() -> None:
    listed = [file("a"), file("b", 99), file("c", 100), file("d", 1), file("day=1/e", 0)]
    assert found(listed, {"a"}) == ["day=1/e", "d", "b"]


def test_hidden_folders_are_somebodys_own_but_a_partition_is_not() -> None:
    names = ["_delta_log/1.json", "_orphans/run/x", ".hidden", "data/.part-0.crc", "x/_tmp/y", "_day=1/z", "ordinary"]
    assert [name for name in names if is_scanned(name)] == ["_day=1/z", "ordinary"]
    assert found([file(name) for name in [*names, "kept"]], {"kept"}) == ["_day=1/z", "ordinary"]


def test_where_no_named_file_is_found_nothing_is_taken() -> None:
    with pytest.raises(NothingRecognisedError, match="none of the 1 files that its versions refer to"):
        found([file("a"), file("b")], {"elsewhere/a"})
    assert found([], {"a"}) == []
    assert found([file("a")], set()) == ["a"]


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("part-0.parquet", "part-0.parquet"),
        ("day=1/part 0#?.parquet", "day=1/part 0#?.parquet"),
        ("/lake/shop/orders/data/a", "data/a"),
        ("file:/lake/shop/orders/data/a", "data/a"),
        ("file:///lake/shop/orders/data/a", "data/a"),
        ("file:///mnt/disk1/orders/data/a", "data/a"),
        ("file:///lake/shop/orders/../orders/data//a", "data/a"),
        ("/lake/shop/orders2/data/a", None),
        ("/lake/shop/orders", None),
        ("../orders2/a", None),
        ("file:/etc/passwd", None),
    ],
)
def test_addresses_of_a_file(location: str, path: str | None) -> None:
    assert relative_path(location, FOLDERS, "t") == path


@pytest.mark.parametrize("location", ["s3://bucket/orders/a", "s3a://bucket/a", "hdfs://name/lake/shop/orders/a"])
def test_another_scheme_ends_the_search(location: str) -> None:
    with pytest.raises(StrangeReferenceError, match="no orphans are"):
        relative_path(location, FOLDERS, "t")
