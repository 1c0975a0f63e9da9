"""Which class archive an application maps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lakebound.landing.class_archive import archive_options, broker_archive, class_archive, class_archive_option
from lakebound.local.broker import broker_command, format_command


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    (tmp_path / "environment" / "class-archive").mkdir(parents=True)
    folder = tmp_path / "jars"
    for kind in ("spark", "broker"):
        (folder / kind).mkdir(parents=True)
        (folder / kind / "a.jar").write_bytes(b"jar")
    return folder


def test_there_is_no_option_without_an_archive(jars: Path) -> None:
    assert class_archive_option(jars) == ""


def test_the_archive_of_these_jars_is_mapped(jars: Path) -> None:
    class_archive(jars).touch()
    assert f"-XX:SharedArchiveFile={class_archive(jars)} " in class_archive_option(jars)


def test_other_jars_have_another_archive(jars: Path) -> None:
    class_archive(jars).touch()
    (jars / "spark" / "a.jar").write_bytes(b"newer")
    assert class_archive_option(jars) == ""


def test_the_broker_has_an_archive_of_its_own(jars: Path) -> None:
    class_archive(jars).touch()
    assert f"-XX:SharedArchiveFile={class_archive(jars)}" not in broker_command(jars, jars, 512)
    archive = broker_archive(jars)
    archive.touch()
    for command in (broker_command(jars, jars, 512), format_command(jars, jars)):
        assert command[1 : 1 + len(archive_options(archive))] == archive_options(archive)
    (jars / "broker" / "a.jar").write_bytes(b"newer")
    assert not any(str(archive) in part for part in broker_command(jars, jars, 512))
