"""Where a streaming reader of a table stands, from its Spark checkpoint: what it has still to read is not taken away."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakebound.errors import LakeboundError
from lakebound.landing.checkpoint.log_files import OffsetsFile, parse_commit, parse_offsets
from lakebound.spec.maintenance import ReaderSpec
from lakebound.spec.named_files import UnusableFileError, read_bounded

Sources = Sequence[dict[str, Any] | None]
"""The offset of each source of a query; None for one without an offset."""

_READINGS = 5
_DELTA, _ICEBERG = "reservoirVersion", "snapshot_id"


class ReaderUnreadableError(LakeboundError):
    """Where a registered reader stands cannot be learned."""

    def __init__(self, reader: str, checkpoint: Path, reason: str) -> None:
        super().__init__(
            f"reader {reader!r}: {reason} (checkpoint {checkpoint}); nothing that it may need is removed until the checkpoint "
            f"is repaired or the reader is removed from maintenance.readers"
        )


@dataclass(frozen=True)
class DeltaPosition:
    """Where a streaming reader of a Delta table stands.

    Attributes:
        next_version: The version that it has still to read, or is in the middle of.
        restart_version: Where its newest finished batch began, None where that is not known, as of its first batch. When the
            reader is started again, Spark asks Delta for the rows of that batch before it goes on
            (``MicroBatchExecution.populateStartOffsets`` of Spark 4.1), which fails where the log no longer has them. Only the
            log is asked: files may be gone.
    """

    next_version: int
    restart_version: int | None


def delta_position(reader: ReaderSpec, table_id: str) -> DeltaPosition:
    """Return where a reader of a Delta table stands.

    Args:
        reader: With a checkpoint or a version.
        table_id: The table's own id, by which a query of several tables names it.

    Raises:
        ReaderUnreadableError: It cannot be learned.
    """
    if reader.version is not None or reader.checkpoint is None:
        return DeltaPosition(int(reader.version or 0), int(reader.version or 0))
    batch, sources = _newest_finished(reader, reader.checkpoint)
    ends = _versions(sources, table_id)
    if not ends:
        others = (
            ", ".join(sorted({str(source.get("reservoirId")) for source in sources if source and _DELTA in source})) or "none"
        )
        reason = f"its query reads no Delta table with the id {table_id} (but {others}): the table may have been created again"
        raise ReaderUnreadableError(reader.name, reader.checkpoint, reason)
    begins = _versions(_begin(reader.checkpoint, batch), table_id)
    # A source whose begin is not there reads all that it once began with, and the checkpoint does not tell what that was.
    return DeltaPosition(min(ends.values()), min(begins.values()) if ends.keys() <= begins.keys() else None)


def iceberg_positions(reader: ReaderSpec) -> tuple[int, ...]:
    """Return the snapshots that a reader has read last, or is in the middle of: one for each Iceberg table of its query.

    Of one that runs with Trigger.AvailableNow they are the snapshots at which it once began: each start looks for these.

    Raises:
        ReaderUnreadableError: It cannot be learned.
    """
    if reader.version is not None or reader.checkpoint is None:
        return (int(reader.version or 0),)
    sources: Sources
    if reader.available_now:
        sources = list(_beginnings(reader, reader.checkpoint))
    else:
        _, sources = _newest_finished(reader, reader.checkpoint)
    found = tuple(int(source[_ICEBERG]) for source in sources if source and _ICEBERG in source)
    if not found:
        raise ReaderUnreadableError(reader.name, reader.checkpoint, "its query reads no Iceberg table")
    return found


def _versions(sources: Sources, table_id: str) -> dict[int, int]:
    """Return the version of each source that reads a table, by its place in the query."""
    return {
        place: int(source[_DELTA])
        for place, source in enumerate(sources)
        if source and _DELTA in source and source.get("reservoirId") == table_id
    }


def _begin(checkpoint: Path, batch: int) -> Sources:
    """Return the offsets at which a finished batch began; empty where that cannot be known.

    It is the end of the newest batch before it whose file is there: who tracks progress asynchronously leaves some out. Where
    none is there, and the next batch has begun, Spark starts with that one, and so at this one's end.
    """
    folder = checkpoint / "offsets"
    try:
        numbers = {int(path.name) for path in folder.iterdir() if path.name.isdecimal()}
        found = max((number for number in numbers if number < batch), default=batch if batch + 1 in numbers else None)
        return _offsets_of(parse_offsets(found, _read(folder / str(found)))) if found is not None else []
    except OSError:  # the query goes on meanwhile, and deletes the files of old batches
        return []


def _beginnings(reader: ReaderSpec, checkpoint: Path) -> Iterator[dict[str, Any]]:
    """Yield the offset at which each Iceberg source once began, as Iceberg itself keeps it."""
    for path in sorted((checkpoint / "sources").glob("*/offsets/0")):
        try:
            source = json.loads(_read(path))
        except (OSError, ValueError) as exc:
            raise ReaderUnreadableError(reader.name, checkpoint, f"{path} cannot be read: {exc}") from exc
        if isinstance(source, dict):
            yield source


def _newest_finished(reader: ReaderSpec, checkpoint: Path) -> tuple[int, Sources]:
    """Return the newest finished batch, and the offset of each source at its end."""
    for reading in range(1, _READINGS + 1):
        try:
            batch = _newest(checkpoint / "commits")
            if batch is None:
                raise ReaderUnreadableError(reader.name, checkpoint, "it has finished no batch yet, so it may need everything")
            commit = parse_commit(batch, _read(checkpoint / "commits" / str(batch)))
            offsets = parse_offsets(batch, _read(checkpoint / "offsets" / str(batch)))
        except OSError as exc:
            # The query goes on meanwhile, and deletes the files of old batches.
            if reading == _READINGS:
                reason = f"{exc.filename or checkpoint}: {exc.strerror or exc}"
                raise ReaderUnreadableError(reader.name, checkpoint, reason) from exc
            continue
        flaw = commit.flaw or offsets.flaw
        if flaw is None:
            return batch, _offsets_of(offsets)
        if reading == _READINGS:
            raise ReaderUnreadableError(reader.name, checkpoint, f"the files of its batch {batch} cannot be read: {flaw}")
    raise AssertionError("the last reading returns or raises")


def _read(path: Path) -> bytes:
    """Return what a file of a checkpoint holds; an author names the folder, so it may be no file, or have no end.

    Raises:
        OSError: It cannot be read.
    """
    try:
        return read_bounded(path).encode()
    except UnusableFileError as exc:
        raise OSError(errno.EIO, str(exc), str(path)) from None


def _offsets_of(file: OffsetsFile) -> Sources:
    found = [json.loads(line) if line is not None else None for line in file.sources]
    return [source if isinstance(source, dict) else None for source in found]


def _newest(commits: Path) -> int | None:
    """Return the highest batch; a file of another name is nobody's."""
    return max((int(path.name) for path in commits.iterdir() if path.name.isdecimal()), default=None)
