"""Bytecode for the Python that Spark brings along.

Spark's processes import ``pyspark`` and ``py4j`` from zip files, which Spark puts before all other places
(``PythonUtils.sparkPythonPath``). Python never writes bytecode into a zip file, so each application, and each of Spark's Python
workers, compiles 150 modules again: 0.7 s of a core. With bytecode in the zip it takes that.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path

_UNCHECKED_HASH = 1
"""Bytecode goes by the source's hash, and nobody compares it (PEP 552): the times of change in a zip file have no time zone."""


def spark_zips() -> list[Path]:
    """Return the zip files of Python that came with pyspark, by name; none where it is not installed."""
    # Found, not imported: the core does without pyspark.
    pyspark = importlib.util.find_spec("pyspark")
    folders = (pyspark.submodule_search_locations or []) if pyspark else []
    return [file for folder in folders for file in sorted(Path(folder).glob("python/lib/*.zip"))]


def add_bytecode(file: Path) -> bool:
    """Add bytecode to a zip file of Python that has none; return whether it had none.

    Python takes bytecode that another Python made for none at all, and compiles again.

    Raises:
        OSError: The file, or its folder, cannot be written.
    """
    with zipfile.ZipFile(file) as found:
        if any(name.endswith(".pyc") for name in found.namelist()):
            return False
        compiled = list(_compiled(found, file))
    draft = file.with_suffix(f".{os.getpid()}")
    try:
        # A new file: those of several environments may be one file with several names. What was in it stays at its place: a
        # process that runs has read where that is.
        shutil.copy2(file, draft)
        with zipfile.ZipFile(draft, "a", zipfile.ZIP_DEFLATED) as longer:
            for name, bytecode in compiled:
                longer.writestr(name, bytecode)
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return True


def _compiled(found: zipfile.ZipFile, file: Path) -> Iterator[tuple[str, bytes]]:
    for name in found.namelist():
        if not name.endswith(".py") or "/tests/" in name:
            continue
        source = found.read(name)
        try:
            # By the name that Python itself would give: PySpark knows its own frames by it.
            code = compile(source, f"{file}/{name}", "exec", dont_inherit=True)
        except SyntaxError:
            continue  # for another version of Python
        hashed = importlib.util.source_hash(source)
        yield f"{name}c", importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH.to_bytes(4, "little") + hashed + marshal.dumps(code)
