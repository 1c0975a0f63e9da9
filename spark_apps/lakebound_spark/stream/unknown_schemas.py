"""Where in each partition the first record stands whose schema is not known: what lies before it can land meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from lakebound.formats.framing import SCHEMA_HEADERS, schema_of
from lakebound.formats.headers import headers_of
from lakebound.formats.schemas import PartOfRecord, SchemaId
from lakebound.ledger.marks import NextOffsets, lowest
from lakebound_spark.batch.decode import HEADERS, KEY, VALUE, raw_columns

Known = Mapping[PartOfRecord, frozenset[SchemaId]]
"""By the part of the record, the schemas of which it is known what becomes of their records."""
_COLUMNS: Mapping[PartOfRecord, str] = {"key": KEY, "value": VALUE}


def first_unknown(records: DataFrame, known: Known) -> NextOffsets:
    """Return the offset of the first record of each partition that names a schema which is not known.

    A partition without such a record is left out.

    Args:
        records: Kafka's columns.
        known: The schemas of each part that has a registry.
    """

    def unknown(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        for batch in batches:
            yield batch.select(["topic", "partition", "offset"]).filter(pa.array(are_unknown(batch, known), pa.bool_()))

    given = records.select("topic", "partition", "offset", *raw_columns())
    rows = given.mapInArrow(unknown, "topic string, partition int, offset long").toArrow()
    return lowest({row["topic"]: {row["partition"]: row["offset"]}} for row in rows.to_pylist())


def are_unknown(batch: pa.RecordBatch, known: Known) -> list[bool]:
    """Say of each record whether a part of it names a schema that is not known.

    Args:
        batch: With ``_key``, ``_value`` and ``_headers``.
        known: The schemas of each part that has a registry.
    """
    headers, found = headers_of(batch[HEADERS]), [False] * len(batch)
    for part, ids in known.items():
        for at, value in enumerate(batch[_COLUMNS[part]].to_pylist()):
            framed = None if value is None else schema_of(value, headers[at], SCHEMA_HEADERS[part])
            found[at] = found[at] or (framed is not None and framed[0] not in ids)
    return found
