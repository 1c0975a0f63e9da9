"""What makes rows of a pipeline's records, as one hash: what the YAML says of it, schema files, the transform's modules, and
packages.
"""

from __future__ import annotations

import hashlib
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lakebound.landing.schema_files import SchemaFiles
from lakebound.ledger.sources import Source
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.transform_files import transform_files

_FIELDS = {"value": True, "key": True, "headers": True, "null_values": True, "transform": True, "reference": True}
"""Of the YAML; the others say where rows go, and when."""
_PACKAGES = ("lakebound", "pyspark", "pyarrow")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_SHOWN = 12
"""Characters of a hash."""


def row_source(spec: PipelineSpec, apps: Path, schemas: SchemaFiles) -> Source:
    """Return the hash of what makes the rows, and the commit of the checkout that it lies in.

    Args:
        spec: The pipeline.
        apps: Folder of the spark-submit entry points, with the modules of transforms.
        schemas: That the pipeline names as files.
    """
    digest = hashlib.sha256(spec.model_dump_json(by_alias=True, include=_FIELDS).encode())
    for package in _PACKAGES:
        digest.update(f"{package} {_version(package)}\n".encode())
    for part, schema in sorted(schemas.items()):
        digest.update(f"{part} {schema.fingerprint}\n".encode())
    for file in transform_files(spec, apps):
        digest.update(f"{file.relative_to(apps)}\n".encode() + file.read_bytes())
    return Source(hash=digest.hexdigest()[:_SHOWN], revision=checked_out(apps)[:_SHOWN])


def checked_out(folder: Path) -> str:
    """Return the commit that is checked out in a folder or in one above it; empty where there is none.

    Git's files are read, and Git is not run: it would run what a configuration beside these files tells it to.
    """
    for at in (folder.absolute(), *folder.absolute().parents):
        if (git := at / ".git").exists():
            try:
                return _commit(git)
            except (OSError, ValueError):
                return ""
    return ""


def _commit(git: Path) -> str:
    if git.is_file():  # a further working tree
        git = git.parent / git.read_text().removeprefix("gitdir:").strip()
    shared = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    head = (git / "HEAD").read_text().strip()
    name = head.removeprefix("ref:").strip()
    if name == head:
        return _only_commit(head)
    for place in (git / name, shared / name):
        if place.is_file():
            return _only_commit(place.read_text().strip())
    packed = (shared / "packed-refs").read_text().splitlines()
    return next((_only_commit(line.split()[0]) for line in packed if line.endswith(f" {name}")), "")


def _only_commit(text: str) -> str:
    return text if _COMMIT.fullmatch(text) else ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
