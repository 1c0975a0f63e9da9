"""Where a streaming reader of a table stands, from its Spark checkpoint: what it has still to read is not taken away."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
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
    """Return the Delta version from which a reader reads when it is started again.

    That is where its newest finished batch began: before it goes on, Spark asks Delta for the rows of that batch once more
    (``MicroBatchExecution.populateStartOffsets`` of Spark 4.1), which fails where the log no longer has them.

    Args:
        reader: With a checkpoint or a version.
        table_id: The table's own id, by which a query of several tables names it.

    Raises:
        ReaderUnreadableError: It cannot be learned.
    """
    if reader.version is not None or reader.checkpoint is None:
        return int(reader.version or 0)
    ends, *before = _newest_finished(reader, reader.checkpoint, batches=2)
    if not _versions(ends, table_id):
        others = ", ".join(sorted({str(source.get("reservoirId")) for source in ends if _DELTA in source})) or "none"
        reason = f"its query reads no Delta table with the id {table_id} (but {others}): the table may have been created again"
        raise ReaderUnreadableError(reader.name, reader.checkpoint, reason)
    begins = [version for sources in before for version in _versions(sources, table_id)]
    if not begins:
        reason = "it has finished only its first batch, which Spark reads again at the next start, so it may need everything"
        raise ReaderUnreadableError(reader.name, reader.checkpoint, reason)
    return min(begins)


def iceberg_positions(reader: ReaderSpec) -> tuple[int, ...]:
    """Return the snapshots that a reader has read last, or is in the middle of: one for each Iceberg table of its query.

    Of one that runs with Trigger.AvailableNow they are the snapshots at which it once began: each start looks for these.

    Raises:
        ReaderUnreadableError: It cannot be learned.
    """
    if reader.version is not None or reader.checkpoint is None:
        return (int(reader.version or 0),)
    if reader.available_now:
        sources = list(_beginnings(reader, reader.checkpoint))
    else:
        (sources,) = _newest_finished(reader, reader.checkpoint, batches=1)
    found = tuple(int(source[_ICEBERG]) for source in sources if _ICEBERG in source)
    if not found:
        raise ReaderUnreadableError(reader.name, reader.checkpoint, "its query reads no Iceberg table")
    return found


def _versions(sources: Sequence[dict[str, Any]], table_id: str) -> list[int]:
    return [int(source[_DELTA]) for source in sources if _DELTA in source and source.get("reservoirId") == table_id]


def _beginnings(reader: ReaderSpec, checkpoint: Path) -> Iterator[dict[str, Any]]:
    """Yield the offset at which each Iceberg source once began, as Iceberg itself keeps it."""
    for path in sorted((checkpoint / "sources").glob("*/offsets/0")):
        try:
            source = json.loads(path.read_text())
        except (OSError, ValueError) as exc:
            raise ReaderUnreadableError(reader.name, checkpoint, f"{path} cannot be read: {exc}") from exc
        if isinstance(source, dict):
            yield source


def _newest_finished(reader: ReaderSpec, checkpoint: Path, batches: int) -> list[list[dict[str, Any]]]:
    """Return the offset of each source at the ends of the newest finished batches, the newest first.

    Args:
        reader: Whose checkpoint it is.
        checkpoint: The folder.
        batches: How many; there are fewer where the query has not done as many.
    """
    for reading in range(1, _READINGS + 1):
        try:
            batch = _newest(checkpoint / "commits")
            if batch is None:
                raise ReaderUnreadableError(reader.name, checkpoint, "it has finished no batch yet, so it may need everything")
            commit = parse_commit(batch, (checkpoint / "commits" / str(batch)).read_bytes())
            wanted = range(batch, max(batch - batches, -1), -1)
            offsets = [parse_offsets(number, (checkpoint / "offsets" / str(number)).read_bytes()) for number in wanted]
        except OSError as exc:
            # The query goes on meanwhile, and deletes the files of old batches.
            if reading == _READINGS:
                reason = f"{exc.filename or checkpoint}: {exc.strerror or exc}"
                raise ReaderUnreadableError(reader.name, checkpoint, reason) from exc
            continue
        flaws = [(batch, commit.flaw), *((file.batch, file.flaw) for file in offsets)]
        number, flaw = next((found for found in flaws if found[1] is not None), (batch, None))
        if flaw is None:
            return [_offsets_of(file.sources) for file in offsets]
        if reading == _READINGS:
            raise ReaderUnreadableError(reader.name, checkpoint, f"the files of its batch {number} cannot be read: {flaw}")
    raise AssertionError("the last reading returns or raises")


def _offsets_of(lines: Sequence[str | None]) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines if line is not None]
    return [source for source in found if isinstance(source, dict)]


def _newest(commits: Path) -> int | None:
    """Return the highest batch; a file of another name is nobody's."""
    return max((int(path.name) for path in commits.iterdir() if path.name.isdecimal()), default=None)
