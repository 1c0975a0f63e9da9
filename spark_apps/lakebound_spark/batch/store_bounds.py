"""Which values a store takes in its columns, for columns of Spark; of Arrow, the core knows it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType

from lakebound.landing.to_stores.record_keys import MOST_KEY_BYTES
from lakebound.landing.to_stores.store_rows import staged_schema
from lakebound.landing.to_stores.value_bounds import LARGEST_SUMMAND, NUL, ValueBound, value_bounds
from lakebound.spec.to_stores import ToStoreSpec
from lakebound_spark.batch.landable import some_value
from lakebound_spark.column_names import column_named


@dataclass(frozen=True)
class StoreBound:
    """What one column must be for a store.

    Attributes:
        target: Id of the store.
        bound: Of the column.
    """

    target: str
    bound: ValueBound

    @property
    def told(self) -> str:
        """What is wrong with a row that the store does not take."""
        return f"{self.target}: {self.bound.told}"

    def is_exceeded(self, output: DataFrame) -> Column:
        """Return the condition that the store does not take a row."""
        name, what = self.bound.column, self.bound.what
        value, kind = column_named(name), output.schema[name].dataType
        if what == "key":
            size = F.octet_length(value if isinstance(kind, BinaryType) else value.cast("string"))
            return value.isNull() | (size > F.lit(MOST_KEY_BYTES))
        if what == "time":
            return value.isNull()
        if what == "summand":
            return F.coalesce((value > F.lit(LARGEST_SUMMAND)) | (value < F.lit(-LARGEST_SUMMAND)), F.lit(False))
        return F.coalesce(some_value(value, kind, _has_nul), F.lit(False))  # type: ignore[arg-type]

    def holds(self, rows: pa.Table) -> bool:
        """Whether the store takes all rows."""
        return self.bound.holds(rows)


def store_bounds(one: ToStoreSpec, output: pa.Schema) -> list[StoreBound]:
    """Return the bounds of a store.

    Args:
        one: The store.
        output: Columns of the pipeline's rows.
    """
    return [StoreBound(one.id, bound) for bound in value_bounds(one, staged_schema(one, output))]


def _has_nul(value: Column, kind: DataType) -> Column | None:
    """A ``Test``: a text has the character that PostgreSQL has not."""
    return value.contains(NUL) if isinstance(kind, StringType) else None
