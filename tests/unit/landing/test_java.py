"""Which Java is used, and which versions are refused: by the code, and by ``make install`` before there is any code."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.support.waiting import HANGS_SECONDS

from lakebound.errors import ServiceError
from lakebound.landing.class_archive import class_archive
from lakebound.landing.java import check_java, java_command, java_problem
from lakebound.local.broker import broker_command
from lakebound.local.jars import ivy_command

REPOSITORY = Path(__file__).parents[3]

OLD = 'java version "1.8.0_402"\nJava(TM) SE Runtime Environment\n'
GOOD = 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.15" 2025-04-15\n'
LATER = 'openjdk version "21-ea" 2023-09-19\n'
BETWEEN = 'openjdk version "22.0.1" 2024-04-16\n'
NEW = 'openjdk version "24" 2025-03-18\n'


def make_java(folder: Path, told: str) -> Path:
    """Write a program that says of itself what a Java says; return the folder for ``JAVA_HOME``."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{told}END\n")
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize("told", [GOOD, LATER])
def test_what_spark_supports_is_taken(told: str) -> None:
    assert java_problem("java", told) is None


@pytest.mark.parametrize(
    ("told", "named"),
    [(OLD, "is Java 1.8.0_402"), (BETWEEN, "is Java 22.0.1"), (NEW, "is Java 24"), (None, "cannot"), ("", "cannot")],
)
def test_another_version_is_refused_with_what_to_do(told: str | None, named: str) -> None:
    problem = java_problem("/j/bin/java", told)
    assert problem is not None and f"/j/bin/java {named}" in problem
    assert "needs Java 17 or 21" in problem and "JAVA_HOME" in problem


def test_the_java_of_java_home_is_used_as_spark_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{make_java(tmp_path / 'path', GOOD) / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert java_command() == "java"
    check_java("Kafka broker")
    of_path = class_archive(tmp_path / "jars")

    new = make_java(tmp_path / "new", NEW)
    monkeypatch.setenv("JAVA_HOME", str(new))
    with pytest.raises(ServiceError, match=f"^Kafka broker: .*{new}/bin/java is Java 24"):
        check_java("Kafka broker")
    started = str(new / "bin" / "java")
    assert broker_command(Path("/j"), Path("/b"), 512)[0] == ivy_command(Path("/i"), Path("/x"), Path("/j"))[0] == started
    assert class_archive(tmp_path / "jars") != of_path

    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "missing"))
    with pytest.raises(ServiceError, match="missing/bin/java cannot be started"):
        check_java("jars")


def make_install(folder: Path, **variables: str) -> str:
    """Run ``make install`` on a copy, with a Python that ends it right after the checks; return what it printed."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(REPOSITORY / name, folder / name)
    python = folder / "python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || exit 1\n')
    python.chmod(0o755)
    variables = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(
        ["make", "install", f"PYTHON={python}"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANGS_SECONDS,
    )
    assert done.returncode != 0 and not (folder / ".venv" / "bin").exists()
    return done.stderr


def test_make_install_looks_at_the_java_that_spark_will_use(tmp_path: Path) -> None:
    good, new = (make_java(tmp_path / name, told) for name, told in (("good", GOOD), ("new", NEW)))
    path = f"{good / 'bin'}:{os.environ['PATH']}"
    refused = make_install(tmp_path, PATH=path, JAVA_HOME=str(new))
    assert "needs Java 17 or 21" in refused and f"{new}/bin/java is Java 24" in refused and "JAVA_HOME" in refused
    assert "python3-venv" in make_install(tmp_path, PATH=path), "the check of Java has passed"


@pytest.mark.parametrize("told", [OLD, BETWEEN, NEW, "nothing\n"])
def test_make_install_refuses_what_spark_does_not_support(told: str, tmp_path: Path) -> None:
    assert "needs Java 17 or 21" in make_install(tmp_path, JAVA_HOME=str(make_java(tmp_path / "java", told)))


@pytest.mark.parametrize("told", [GOOD, LATER])
def test_make_install_takes_what_spark_supports(told: str, tmp_path: Path) -> None:
    assert "needs Java" not in make_install(tmp_path, JAVA_HOME=str(make_java(tmp_path / "java", told)))


def test_make_install_says_that_there_is_no_java(tmp_path: Path) -> None:
    assert "cannot be started, or is no Java" in make_install(tmp_path, JAVA_HOME=str(tmp_path / "missing"))
