"""Where a streaming reader of a table stands, from its Spark checkpoint: what it has still to read is not taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lakebound.errors import LakeboundError
from lakebound.landing.checkpoint.log_files import parse_commit, parse_offsets
from lakebound.spec.maintenance import ReaderSpec

_READINGS = 5
_DELTA, _ICEBERG = "reservoirVersion", "snapshot_id"


class ReaderUnreadableError(LakeboundError):
    """Where a registered reader stands cannot be learned."""

    def __init__(self, reader: str, checkpoint: Path, reason: str) -> None:
        super().__init__(
            f"reader {reader!r}: {reason} (checkpoint {checkpoint}); nothing that it may need is removed until the checkpoint "
            f"is repaired or the reader is removed from maintenance.readers"
        )


def delta_position(reader: ReaderSpec, table_id: str) -> int:
    """Return the Delta version that a reader has still to read, or is in the middle of.

    Args:
        reader: With a checkpoint or a version.
        table_id: The table's own id, by which a query of several tables names it.

    Raises:
        ReaderUnreadableError: It cannot be learned.
    """
    if reader.version is not None or reader.checkpoint is None:
        return int(reader.version or 0)
    found = [source for source in _sources(reader, reader.checkpoint) if _DELTA in source]
    own = [int(source[_DELTA]) for source in found if source.get("reservoirId") == table_id]
    if not own:
        others = ", ".join(sorted(str(source.get("reservoirId")) for source in found)) or "none"
        reason = f"its query reads no Delta table with the id {table_id} (but {others}): the table may have been created again"
        raise ReaderUnreadableError(reader.name, reader.checkpoint, reason)
    return min(own)


def iceberg_positions(reader: ReaderSpec) -> tuple[int, ...]:
    """Return the snapshots that a reader has read last, or is in the middle of: one for each Iceberg table of its query.

    Of one that runs with Trigger.AvailableNow they are the snapshots at which it once began: each start looks for these.

    Raises:
        ReaderUnreadableError: It cannot be learned.
    """
    if reader.version is not None or reader.checkpoint is None:
        return (int(reader.version or 0),)
    sources = _sources(reader, reader.checkpoint)
    if reader.available_now:
        sources = _beginnings(reader, reader.checkpoint)
    found = tuple(int(source[_ICEBERG]) for source in sources if _ICEBERG in source)
    if not found:
        raise ReaderUnreadableError(reader.name, reader.checkpoint, "its query reads no Iceberg table")
    return found


def _sources(reader: ReaderSpec, checkpoint: Path) -> Iterator[dict[str, Any]]:
    """Yield the offset of each source at the end of the newest batch that is finished: from there it reads on."""
    content = _newest_finished(reader, checkpoint)
    for line in content:
        source = json.loads(line) if line is not None else None
        if isinstance(source, dict):
            yield source


def _beginnings(reader: ReaderSpec, checkpoint: Path) -> Iterator[dict[str, Any]]:
    """Yield the offset at which each Iceberg source once began, as Iceberg itself keeps it."""
    for path in sorted((checkpoint / "sources").glob("*/offsets/0")):
        try:
            source = json.loads(path.read_text())
        except (OSError, ValueError) as exc:
            raise ReaderUnreadableError(reader.name, checkpoint, f"{path} cannot be read: {exc}") from exc
        if isinstance(source, dict):
            yield source


def _newest_finished(reader: ReaderSpec, checkpoint: Path) -> tuple[str | None, ...]:
    for reading in range(1, _READINGS + 1):
        try:
            batch = _newest(checkpoint / "commits")
            if batch is None:
                raise ReaderUnreadableError(reader.name, checkpoint, "it has finished no batch yet, so it may need everything")
            commit = parse_commit(batch, (checkpoint / "commits" / str(batch)).read_bytes())
            offsets = parse_offsets(batch, (checkpoint / "offsets" / str(batch)).read_bytes())
        except OSError as exc:
            # The query goes on meanwhile, and deletes the files of old batches.
            if reading == _READINGS:
                reason = f"{exc.filename or checkpoint}: {exc.strerror or exc}"
                raise ReaderUnreadableError(reader.name, checkpoint, reason) from exc
            continue
        flaw = commit.flaw or offsets.flaw
        if flaw is None:
            return offsets.sources
        if reading == _READINGS:
            raise ReaderUnreadableError(reader.name, checkpoint, f"the files of its batch {batch} cannot be read: {flaw}")
    raise AssertionError("the last reading returns or raises")


def _newest(commits: Path) -> int | None:
    """Return the highest batch; a file of another name is nobody's."""
    return max((int(path.name) for path in commits.iterdir() if path.name.isdecimal()), default=None)
