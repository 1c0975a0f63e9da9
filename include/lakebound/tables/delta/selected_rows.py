"""Some rows of a Delta table, by PyArrow's dataset."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.compute as pc

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.delta.open import open_at
from lakebound.tables.places import Places
from lakebound.tables.selected_rows import Selection


def selected_rows(spec: TableSpec, places: Places, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Yield the rows; arguments are those of ``lakebound.tables.selected_rows``."""
    conditions = [pc.field(name).isin(list(values)) for name, values in selection.among.items()]
    if selection.offsets is not None:
        offset, (first, last) = pc.field(KAFKA_COLUMN, "offset"), selection.offsets
        conditions += [offset >= first, offset <= last]
    where = reduce(and_, conditions) if conditions else None
    projected = {name: pc.field(KAFKA_COLUMN, name) for name in selection.kafka}
    dataset = open_at(places.folder(spec)).to_pyarrow_dataset()
    projected |= {name: pc.field(name) for name in selection.columns if name in dataset.schema.names}
    yield from dataset.to_batches(columns=projected, filter=where)
