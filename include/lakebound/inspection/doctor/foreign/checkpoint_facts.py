"""What the files of one checkpoint say, all parsed. Pure: file contents in, facts out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from lakebound.landing.checkpoint.log_files import (
    CommitFile,
    MetadataFile,
    OffsetsFile,
    parse_commit,
    parse_initial_offsets,
    parse_metadata,
    parse_offsets,
)

SparkLogFile = TypeVar("SparkLogFile", OffsetsFile, CommitFile)

_CANONICAL = re.compile(r"^(0|[1-9][0-9]*)$")
# What Java's Long.parseLong accepts: Spark lists such a file as a batch, and then looks for its canonical name.
_NUMERIC = re.compile(r"^[+-]?[0-9]+$")


@dataclass(frozen=True)
class CheckpointFacts:
    """One checkpoint.

    Attributes:
        metadata: None when the file is missing.
        offsets: Per batch, its file in ``offsets/``.
        commits: Per batch, its file in ``commits/``.
        initial: Per source, its file ``sources/I/0``.
        strays: Files in offsets/ and commits/ that Spark reads as batches because of their names, but which are not.
        leftovers: Temporary files of writes that did not end.
        is_stateful: There is a ``state/`` with files in it.
        has_checksums: At least one .crc file is there: the checkpoint was written to a local file system.
    """

    metadata: MetadataFile | None = None
    offsets: Mapping[int, OffsetsFile] = field(default_factory=dict)
    commits: Mapping[int, CommitFile] = field(default_factory=dict)
    initial: Mapping[int, OffsetsFile] = field(default_factory=dict)
    strays: tuple[str, ...] = ()
    leftovers: int = 0
    is_stateful: bool = False
    has_checksums: bool = False

    @property
    def query_id(self) -> str | None:
        """The query's id, None when ``metadata`` is missing or damaged."""
        return self.metadata.query_id if self.metadata else None

    @property
    def newest_planned(self) -> int:
        """O: the highest batch in ``offsets/``, -1 without any."""
        return max(self.offsets, default=-1)

    @property
    def newest_finished(self) -> int:
        """C: the highest batch in ``commits/``, -1 without any."""
        return max(self.commits, default=-1)

    def sound_offsets(self, batch: int) -> OffsetsFile | None:
        """Return where a batch ends; for -1, where the query begins. None where the files do not say, or not readably."""
        found = self.offsets.get(batch) if batch >= 0 else self._beginning()
        return found if found is not None and found.flaw is None else None

    def _beginning(self) -> OffsetsFile | None:
        """Return the initial offsets of all sources as one file, None when that of one source is not there or not sound."""
        files = [self.initial[source] for source in sorted(self.initial)]
        if not files or any(file.flaw for file in files) or sorted(self.initial) != list(range(len(files))):
            return None
        marks = {mark: offset for file in files for mark, offset in file.marks.items()}
        checksum = "matches" if all(file.checksum == "matches" for file in files) else "missing"
        sources = tuple(line for file in files for line in file.sources)
        return OffsetsFile(-1, None, "matches" if checksum == "matches" else "missing", b"", None, sources, marks)


def parse_checkpoint(files: Mapping[str, bytes]) -> CheckpointFacts:
    """Return the facts of a checkpoint, given its files by their path below it (``state/`` by name alone)."""
    metadata = files.get("metadata")
    strays: list[str] = []
    return CheckpointFacts(
        metadata=None if metadata is None else parse_metadata(metadata, files.get(".metadata.crc")),
        offsets=_log(files, "offsets", parse_offsets, strays),
        commits=_log(files, "commits", parse_commit, strays),
        initial=_initial(files),
        strays=tuple(strays),
        leftovers=sum(path.endswith(".tmp") for path in files),
        is_stateful=any(path.startswith("state/") for path in files),
        has_checksums=any(path.rpartition("/")[2].startswith(".") and path.endswith(".crc") for path in files),
    )


def _log(
    files: Mapping[str, bytes], folder: str, parse: Callable[[int, bytes, bytes | None], SparkLogFile], strays: list[str]
) -> dict[int, SparkLogFile]:
    found: dict[int, SparkLogFile] = {}
    for path, content in files.items():
        parent, _, name = path.rpartition("/")
        if parent != folder or not _NUMERIC.match(name):
            continue
        if _CANONICAL.match(name):
            found[int(name)] = parse(int(name), content, files.get(f"{folder}/.{name}.crc"))
        else:
            strays.append(path)
    return found


def _initial(files: Mapping[str, bytes]) -> dict[int, OffsetsFile]:
    found: dict[int, OffsetsFile] = {}
    for path, content in files.items():
        parts = path.split("/")
        if len(parts) == 3 and parts[0] == "sources" and _CANONICAL.match(parts[1]) and parts[2] == "0":
            source = int(parts[1])
            found[source] = parse_initial_offsets(content, files.get(f"sources/{source}/.0.crc"), source)
    return found
