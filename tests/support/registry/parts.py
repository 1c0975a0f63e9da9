"""Gets the schema registry of tests from Maven, by Ivy: Apicurio Registry, which speaks Confluent's API.

``python -m tests.support.registry.parts`` gets it where it is missing (158 MB), and does nothing otherwise.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
from pathlib import Path

from lakebound.control.folder import locked
from lakebound.local.jars import ChecksumError, ivy_cache, resolve_with_ivy

FOLDER = Path.home() / ".cache" / "lakebound" / "test-registry"
VERSION = "3.3.3"
APPLICATION = FOLDER / f"apicurio-{VERSION}"
SHA256 = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
IVY_FILE = Path(__file__).parent / "ivy.xml"
_DOWNLOAD_SECONDS = 1800.0


def ensure_registry() -> Path:
    """Return the folder of the registry's application, which is there afterwards.

    Raises:
        ChecksumError: What was downloaded is not what was recorded.
        ServiceError: It cannot be downloaded.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with locked(APPLICATION, _DOWNLOAD_SECONDS):
        if not APPLICATION.is_dir():
            _get()
    return APPLICATION


def _get() -> None:
    jars = FOLDER / "downloaded"
    resolve_with_ivy(IVY_FILE, jars, types=("tar.gz",))
    archive = jars / "registry" / f"apicurio-registry-app-{VERSION}-all.tar.gz"
    with archive.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != SHA256:
            raise ChecksumError([f"the SHA-256 sum of {archive} is not the recorded one"])
    partial = APPLICATION.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(partial, filter="data")
    partial.rename(APPLICATION)
    for folder in (jars, ivy_cache(jars)):
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    ensure_registry()
    sys.exit(0)
