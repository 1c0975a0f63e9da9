"""What must not be taken from a Delta table: its versions, the readers on them, and its log checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lakebound.operations.maintenance.delta.reader_position import DeltaPosition, delta_position
from lakebound.operations.maintenance.history import TablePast
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
