"""Fetch Flink and Kafka Connect into a folder outside the repository, once; needs Maven and a JDK (`mvn` and `javac`).

The packages are named in each peer's ``pom.xml``; Flink's own jars ship inside the Python package apache-flink-libraries.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent
FLINK_LIBRARIES = "apache-flink-libraries==2.1.3"


def home() -> Path:
    """Return where the peers of this version of the sources stand."""
    digest = hashlib.sha256(FLINK_LIBRARIES.encode())
    for path in sorted([*SOURCES.rglob("*.java"), *SOURCES.rglob("pom.xml")]):
        digest.update(path.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "lakebound" / "peers" / digest.hexdigest()[:16]


def install() -> Path:
    """Return the folder of both peers; it is filled at the first call (about 500 MB)."""
    folder = home()
    if (folder / "ready").exists():
        return folder
    for command in ("mvn", "javac"):
        if shutil.which(command) is None:
            raise SystemExit(f"the peers need '{command}' on the PATH; on Debian: the packages maven, openjdk-17-jdk")
    shutil.rmtree(folder, ignore_errors=True)
    print(f"peers: fetching Flink and Kafka Connect into {folder} (about 500 MB, once)", flush=True)
    for peer in ("flink", "connect"):
        shutil.copytree(SOURCES / peer, folder / peer)
        _run(
            folder / peer, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", "-DincludeScope=runtime"
        )
    uv = str(Path(sys.executable).with_name("uv"))
    _run(folder / "flink", uv, "pip", "install", "-q", "--target", "libraries", "--no-deps", FLINK_LIBRARIES)
    for jar in (folder / "flink" / "libraries" / "pyflink" / "lib").glob("*.jar"):
        shutil.copy(jar, folder / "flink" / "lib")
    for peer in ("flink", "connect"):
        sources = [path.name for path in (folder / peer).glob("*.java")]
        _run(folder / peer, "javac", "-nowarn", "-cp", "lib/*", "-d", "classes", *sources)
        shutil.copy(SOURCES / "log4j2.properties", folder / peer)
    (folder / "ready").touch()
    return folder


def _run(folder: Path, *command: str) -> None:
    if subprocess.run(command, cwd=folder, check=False).returncode:
        raise SystemExit(f"the peers could not be installed: '{' '.join(command)}' failed in {folder}")


if __name__ == "__main__":
    print(install())
