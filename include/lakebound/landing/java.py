"""The Java that Spark uses, which the embedded broker uses, too: that of ``JAVA_HOME``, else the one on the PATH.

``spark-class``, Spark's script, chooses like that. The Makefile makes the same check before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from lakebound.errors import ServiceError

SUPPORTED = (17, 21)
"""Major versions. Spark 4.1 supports no others (https://spark.apache.org/docs/4.1.0/): with 24 and later it does not start."""

_TOLD = re.compile(r'version "(?P<version>(?P<major>\d+)[^"]*)"')


def java_command() -> str:
    """Return the program that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def java_problem(command: str, told: str | None) -> str | None:
    """Return why a Java cannot be used, and what to do; None where it can. Pure.

    Args:
        command: The program.
        told: What it says of its version; None where it could not be started.
    """
    found = _TOLD.search(told or "")
    if found and int(found["major"]) in SUPPORTED:
        return None
    what = f"{command} is Java {found['version']}" if found else f"{command} cannot be started, or is no Java"
    rest = "Install one of them, and set JAVA_HOME to its folder or put it first on the PATH"
    return f"Spark needs Java 17 or 21, but {what}. {rest}"


def check_java(service: str) -> None:
    """Check the Java that Spark, and the embedded broker, would use.

    Args:
        service: Who needs it.

    Raises:
        ServiceError: There is none, or Spark does not support its version.
    """
    command = java_command()
    if problem := java_problem(command, _version_text(command)):
        raise ServiceError(service, problem)


def _version_text(command: str) -> str | None:
    if shutil.which(command) is None:
        return None
    try:
        return subprocess.run([command, "-version"], capture_output=True, text=True, errors="replace", check=False).stderr
    except OSError:
        return None
