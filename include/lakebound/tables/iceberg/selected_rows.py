"""Some rows of an Iceberg table, by PyIceberg's scan."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual, Reference
from pyiceberg.expressions.literals import literal

from lakebound.spec.pipeline import KAFKA_COLUMN
from lakebound.spec.table import TableSpec
from lakebound.tables.iceberg.open import open_catalog
from lakebound.tables.places import Places
from lakebound.tables.selected_rows import Selection


def selected_rows(spec: TableSpec, places: Places, selection: Selection) -> Iterator[pa.RecordBatch]:
    """Yield the rows; arguments are those of ``lakebound.tables.selected_rows``."""
    where: BooleanExpression = AlwaysTrue()
    for name, values in selection.among.items():
        where = And(where, In(term=Reference(name), values={literal(value) for value in values}))
    if selection.offsets is not None:
        first, last = (literal(offset) for offset in selection.offsets)
        offset = Reference(f"{KAFKA_COLUMN}.offset")
        where = And(where, And(GreaterThanOrEqual(term=offset, value=first), LessThanOrEqual(term=offset, value=last)))
    loaded = open_catalog(places).load_table((spec.namespace, spec.short_name))
    known = {field.name for field in loaded.schema().fields}
    columns = [name for name in selection.columns if name in known]
    wanted = (*(f"{KAFKA_COLUMN}.{name}" for name in selection.kafka), *columns)
    for batch in loaded.scan(row_filter=where, selected_fields=wanted).to_arrow_batch_reader():
        origin = batch.column(KAFKA_COLUMN)
        flat = {name: origin.field(name) for name in selection.kafka}
        yield pa.RecordBatch.from_pydict(flat | {name: batch.column(name) for name in columns})
