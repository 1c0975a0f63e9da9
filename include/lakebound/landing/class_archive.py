"""The class archives of this environment: what a JVM maps instead of loading its classes again, 15,000 of an application.

Most of a start is the loading of classes. An archive (https://openjdk.org/jeps/350) changes nothing but that
time: a JVM ignores one that does not fit its class path. Applications have one, and so has the embedded broker.
``make class-archive`` makes them (`lakebound.local.training_run`).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from lakebound.landing.java import java_command


def class_archive(jars: Path) -> Path:
    """Return where the applications' archive of this Python environment, this Java and these jars is, or would be."""
    return _archive(jars, [*pyspark_jars(), *sorted((jars / "spark").glob("*.jar"))])


def broker_archive(jars: Path) -> Path:
    """Return where the embedded broker's archive of this Java and these jars is, or would be."""
    return _archive(jars, sorted((jars / "broker").glob("*.jar")))


def class_archive_option(jars: Path) -> str:
    """Return the JVM options that map the applications' archive; empty while there is none."""
    return " ".join(archive_options(class_archive(jars)))


def archive_options(archive: Path) -> list[str]:
    """Return the JVM options that map an archive; none while there is none."""
    # A JVM that cannot use it says so on its standard output, which is no news to anybody: it starts slower, that is all.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"] if archive.exists() else []


def _archive(jars: Path, class_path: list[Path]) -> Path:
    java = os.path.realpath(shutil.which(java_command()) or java_command())
    facts = [java, str(jars), *(_fact(file) for file in (Path(java), *class_path))]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    # In the environment, whose pyspark it belongs to: it goes when that goes.
    return Path(sys.prefix) / "class-archive" / f"{digest}.jsa"


def pyspark_jars() -> list[Path]:
    """Return the jars that came with pyspark, by name; none where it is not installed."""
    # Found, not imported: the core does without pyspark.
    pyspark = importlib.util.find_spec("pyspark")
    folders = (pyspark.submodule_search_locations or []) if pyspark else []
    return [jar for folder in folders for jar in sorted(Path(folder).glob("jars/*.jar"))]


def _fact(file: Path) -> str:
    # As the JVM itself recognises a jar: by name, size and time of change.
    try:
        stat = file.stat()
    except OSError:
        return f"{file.name} missing"
    return f"{file.name} {stat.st_size} {stat.st_mtime_ns}"
