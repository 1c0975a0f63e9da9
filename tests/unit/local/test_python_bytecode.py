"""Zip files of Python get bytecode, which Python takes."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lakebound.local.python_bytecode import add_bytecode, spark_zips

SOURCES = {
    "package/__init__.py": "",
    "package/within.py": "WHERE = (lambda: 0).__code__.co_filename\n",
    "package/tests/__init__.py": "",
    "package/for_another_python.py": "print 'this'\n",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A zip file without bytecode."""
    file = tmp_path / "package.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, source in SOURCES.items():
            made.writestr(name, source)
    file.chmod(0o640)
    return file


def imported(archive: Path) -> list[str]:
    """Import a module in a Python of its own; return the file by which its code goes, and the one it was loaded from."""
    command = [sys.executable, "-c", "from package import within; print(within.WHERE, within.__file__)"]
    environment = {**os.environ, "PYTHONPATH": str(archive), "TZ": "Asia/Kathmandu"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def test_python_takes_the_bytecode_and_sees_no_difference(archive: Path) -> None:
    source = f"{archive}/package/within.py"
    assert imported(archive) == [source, source]
    assert add_bytecode(archive)
    assert imported(archive) == [source, f"{source}c"]


def test_what_was_in_it_stays_at_its_place_and_a_second_time_changes_nothing(archive: Path) -> None:
    mode, before = archive.stat().st_mode, places(archive)
    same_file = archive.with_name("of-another-environment.zip")
    os.link(archive, same_file)
    assert add_bytecode(archive)
    after = places(archive)
    assert {name: after[name] for name in before} == before
    assert {*after} - {*before} == {"package/__init__.pyc", "package/within.pyc"}
    assert places(same_file) == before, "other environments keep what they had"
    assert archive.stat().st_mode == mode
    content = archive.read_bytes()
    assert not add_bytecode(archive)
    assert archive.read_bytes() == content
    assert sorted(archive.parent.iterdir()) == sorted([archive, same_file])


def test_bytecode_of_another_python_is_none(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.MAGIC_NUMBER", b"\x01\x02\r\n")
    assert add_bytecode(archive)
    assert imported(archive) == [f"{archive}/package/within.py"] * 2


def test_spark_brings_two_along() -> None:
    assert [file.name.partition("-")[0] for file in spark_zips()] == ["py4j", "pyspark.zip"]


def places(archive: Path) -> dict[str, int]:
    """Return where each file in it begins."""
    with zipfile.ZipFile(archive) as found:
        return {info.filename: info.header_offset for info in found.infolist()}
