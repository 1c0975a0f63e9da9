"""A class archive for the applications under test: Spark loads some 15,000 classes, and most of a start is spent on that.

The first application that a test stops gracefully writes the archive beside the checked jars; later ones map it. It changes
nothing but the time: a JVM ignores an archive that does not fit its class path, and without ``jcmd`` (a bare runtime) there
is none.
"""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from lakebound.settings import load_settings

QUICK_START = "-XX:TieredStopAtLevel=1"
"""An application that lives for seconds never earns back what the JVM's second compiler costs."""

_DUMP_SECONDS = 180.0
_KEPT_ARCHIVES = 2


def jvm_options() -> str:
    """Return the options of an application's JVM: map the archive, or get ready to write it."""
    archive = _archive()
    if archive.exists():
        return f"{QUICK_START} -XX:SharedArchiveFile={archive}"
    return f"{QUICK_START} -XX:+RecordDynamicDumpInfo" if shutil.which("jcmd") else QUICK_START


def write_archive(pid: int, options: str) -> None:
    """Have the JVM write the archive, if there is none yet and it was started for that."""
    archive = _archive()
    if archive.exists() or "RecordDynamicDumpInfo" not in options:
        return
    draft = archive.with_suffix(f".{pid}")
    command = ["jcmd", str(pid), "VM.cds", "dynamic_dump", str(draft)]
    subprocess.run(command, capture_output=True, timeout=_DUMP_SECONDS, check=False)
    if draft.exists():
        os.replace(draft, archive)
        _forget_older(archive.parent)


def _forget_older(folder: Path) -> None:
    """Each checkout has its own archive of some 150 MB; those of checkouts that are gone would pile up."""
    archives = sorted(folder.glob("test-classes-*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in archives[_KEPT_ARCHIVES:]:
        file.unlink(missing_ok=True)


@functools.cache
def _archive() -> Path:
    jars = load_settings().jars
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    names = sorted(jar.name for jar in (jars / "spark").glob("*.jar"))
    digest = hashlib.sha256("\n".join([version, sys.prefix, str(jars), *names]).encode()).hexdigest()[:16]
    return jars.parent / f"test-classes-{digest}.jsa"
