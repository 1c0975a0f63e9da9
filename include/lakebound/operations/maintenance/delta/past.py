"""What must not be taken from a Delta table: its versions, the readers on them, and its log checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakebound.operations.maintenance.history import TablePast
from lakebound.operations.maintenance.reader_positions import ReaderUnreadableError, Sources, begin_of, newest_finished
from lakebound.operations.maintenance.table_past import past_of, positions, with_pins
from lakebound.spec.maintenance import ReaderSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.checkpoints import whole_checkpoints
from lakebound.tables.delta.history import read_history
from lakebound.tables.delta.open import open_at
from lakebound.tables.places import Places
from lakebound.tables.table import open_table


def read_past(spec: TableSpec, places: Places, readers: Sequence[ReaderSpec]) -> TablePast | None:
    """Return the versions of a table and who stands on which; None where there is no such table.

    Args:
        spec: The table.
        places: Where it is; they may be read-only.
        readers: Those of this table.
    """
    if not open_table(spec, places).exists():
        return None

    def position(reader: ReaderSpec) -> DeltaPosition:
        return delta_position(reader, str(open_at(places.folder(spec)).metadata().id))

    # Readers first: they only go forward, so that they stand on none that is younger than the versions that are read.
    found, problems = positions(readers, position)
    history = read_history(spec, places)
    if history is None:
        return None
    past = past_of(history, spec.id)
    past = past.model_copy(update={"checkpoints": tuple(sorted(whole_checkpoints(history.files)))})
    to_come = () if past.current is None else (past.current + 1,)
    past = with_pins(past, {name: (one.next_version,) for name, one in found.items()}, problems, to_come=to_come)
    return past.model_copy(update={"restarts": _restarts(past, found)})


def _restarts(past: TablePast, found: Mapping[str, DeltaPosition]) -> dict[str, int]:
    """Return from where the log must stay for each reader: all of it where that is not known.

    What is gone cannot be kept any more: earlier versions kept the log from the end of that batch only.
    """
    oldest = past.versions[0].version if past.versions else 0
    wanted = {name: oldest if one.restart_version is None else one.restart_version for name, one in found.items()}
    return {name: version for name, version in wanted.items() if version >= oldest}


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
