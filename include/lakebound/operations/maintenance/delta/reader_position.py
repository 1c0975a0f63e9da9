"""Where a streaming reader of a Delta table stands: what it has still to read is not taken away."""

from __future__ import annotations

from dataclasses import dataclass

from lakebound.operations.maintenance.reader_positions import ReaderUnreadableError, Sources, begin_of, newest_finished
from lakebound.spec.maintenance import ReaderSpec

_VERSION = "reservoirVersion"


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
    batch, sources = newest_finished(reader, reader.checkpoint)
    ends = _versions(sources, table_id)
    if not ends:
        others = (
            ", ".join(sorted({str(source.get("reservoirId")) for source in sources if source and _VERSION in source})) or "none"
        )
        reason = f"its query reads no Delta table with the id {table_id} (but {others}): the table may have been created again"
        raise ReaderUnreadableError(reader.name, reader.checkpoint, reason)
    begins = _versions(begin_of(reader.checkpoint, batch), table_id)
    # A source whose begin is not there reads all that it once began with, and the checkpoint does not tell what that was.
    return DeltaPosition(min(ends.values()), min(begins.values()) if ends.keys() <= begins.keys() else None)


def _versions(sources: Sources, table_id: str) -> dict[int, int]:
    """Return the version of each source that reads a table, by its place in the query."""
    return {
        place: int(source[_VERSION])
        for place, source in enumerate(sources)
        if source and _VERSION in source and source.get("reservoirId") == table_id
    }
