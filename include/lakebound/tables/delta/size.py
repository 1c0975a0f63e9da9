"""How much a Delta table holds."""

from __future__ import annotations

import pyarrow as pa

from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_delta
from lakebound.tables.places import Places
from lakebound.tables.size import TableSize


def table_size(spec: TableSpec, places: Places) -> TableSize:
    """Return what the newest version holds, by its log."""
    files = pa.table(open_delta(places.folder(spec), spec.id).get_add_actions(flatten=True))
    rows, sizes = files["num_records"].to_pylist(), files["size_bytes"].to_pylist()
    return TableSize(sum(count or 0 for count in rows), len(sizes), sum(sizes))
