"""Files of reference data are in one folder: no path, link, device or address leads out of it, and none is told to exist."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.tables.local_tables import places

from lakebound.spec.reference import ReferenceSpec
from lakebound.tables.places import Places
from lakebound_spark.reference.loaded import UnusableReferenceError
from lakebound_spark.reference.sources import make_source

ELSEWHERE = (
    *("/etc/passwd", "/etc", "../outside", "inside/../../outside", ".", "", "/dev/zero", "/proc/self/environ", "~/x", "link"),
    *("s3://bucket/x", "file:///etc/passwd", "http://169.254.169.254/", "link/rows.csv", "/nowhere/at/all"),
)


@pytest.fixture
def at(tmp_path: Path) -> Places:
    for folder in ("references", "references/inside", "outside"):
        (tmp_path / folder).mkdir()
    (tmp_path / "outside" / "rows.csv").write_text("id\n7\n")
    (tmp_path / "references" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "references" / "inside" / "rows.csv").write_text("id\n1\n")
    return places(tmp_path).model_copy(update={"references": tmp_path / "references"})


def rows(at: Places, path: str, file_format: str = "csv") -> Any:
    spec = ReferenceSpec.model_validate({"format": file_format, "path": path, "key": ["id"]})
    return make_source("shop", spec, at).load().rows.to_pylist()


@pytest.mark.parametrize("path", ELSEWHERE)
@pytest.mark.parametrize("file_format", ["csv", "parquet", "delta"])
def test_a_path_leads_nowhere_else(at: Places, path: str, file_format: str) -> None:
    with pytest.raises(UnusableReferenceError) as error:
        rows(at, path, file_format)
    told = str(error.value)
    assert "is not in the folder" in told or (path not in ("/etc/passwd", "/nowhere/at/all") and "there is no" in told)


def test_a_file_in_the_folder_leads_not_out_of_it(at: Places, tmp_path: Path) -> None:
    assert rows(at, "inside") == [{"id": 1}]
    (tmp_path / "references" / "inside" / "more.csv").symlink_to(tmp_path / "outside" / "rows.csv")
    with pytest.raises(UnusableReferenceError, match=r"more\.csv is not a regular file in the folder"):
        rows(at, "inside")


@pytest.mark.parametrize("name", ["inside/pipe.csv", "pipe.csv"])
def test_a_pipe_is_not_waited_for(at: Places, tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "references" / name)
    with pytest.raises(UnusableReferenceError, match=r"not a regular file|neither a file nor a folder"):
        rows(at, "inside" if "/" in name else name)


def test_a_link_inside_of_the_folder_is_followed_as_kubernetes_mounts_files(at: Places, tmp_path: Path) -> None:
    (tmp_path / "references" / "inside" / "rows.csv").rename(tmp_path / "references" / "data")
    (tmp_path / "references" / "inside" / "rows.csv").symlink_to("../data")
    assert rows(at, "inside") == [{"id": 1}]
