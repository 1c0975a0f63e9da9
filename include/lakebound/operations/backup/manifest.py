"""What a backup holds: its list, with sums, and which files of the state belong in it. Pure."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from lakebound.errors import LakeboundError
from lakebound.frozen import FrozenRecord

FORMAT = 1
MANIFEST = "manifest.json"
CATALOG = "catalog.db"
PIPELINES = "pipelines"

_LEFT_OUT = frozenset({"logs", "checkpoints", "turns", "prepared"})
"""Folders that no start needs, and that are large or about applications that run."""

_SAMPLES = "quarantine-samples.json"
"""Values of records. They are in the quarantine table, and newer ones come."""


class BackupError(LakeboundError):
    """A backup cannot be made, or cannot be read."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"backup {path}: {problem}")


class HeldFile(FrozenRecord):
    """One file of the backup; ``path`` is that in the archive."""

    path: str
    size_bytes: int
    sha256: str


class Manifest(FrozenRecord):
    """The list of a backup.

    Attributes:
        format: Of the archive; a later one is refused.
        writer: Version of Lakebound that made it.
        created_at: Epoch seconds.
        host: On which machine.
        home: LAKEBOUND_HOME there.
        warehouse: LAKEBOUND_WAREHOUSE there: the catalog names files below it.
        files: Everything else in the archive.
        iceberg_tables: Metadata file that the catalog names, by ``namespace.table``; empty without a catalog.
    """

    format: int
    writer: str
    created_at: float
    host: str
    home: Path
    warehouse: Path
    files: tuple[HeldFile, ...]
    iceberg_tables: dict[str, str]

    @property
    def pipelines(self) -> list[str]:
        """Whose state it holds, by name."""
        parts = (PurePosixPath(file.path).parts for file in self.files)
        return sorted({found[1] for found in parts if found[0] == PIPELINES})

    @property
    def has_catalog(self) -> bool:
        """Whether it holds the Iceberg catalog."""
        return any(file.path == CATALOG for file in self.files)


def is_state(path: PurePosixPath) -> bool:
    """Return whether a file belongs in a backup, by its path in a pipeline's folder."""
    name = path.name
    passing = name.startswith((".", "stop-")) or name.endswith(".lock")
    return not passing and path.parts[0] not in _LEFT_OUT and path.name != _SAMPLES


def is_safe(path: str) -> bool:
    """Return whether a file of an archive may be written where its path says: below the folders that a restore writes."""
    parts = PurePosixPath(path).parts
    if path == CATALOG:
        return True
    return len(parts) > 2 and parts[0] == PIPELINES and ".." not in parts and is_state(PurePosixPath(*parts[2:]))
