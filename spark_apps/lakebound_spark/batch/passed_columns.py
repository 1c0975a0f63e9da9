"""Columns that a function only passes on: they stay in Python, and the rows that Spark makes say where they were.

Of most functions that is ``_kafka`` with its six fields, and what is not changed. To take such a column into the JVM, through
the plan and back costs as much as to compute one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StructField, StructType

POSITION = StructField("_lakebound_position", IntegerType(), nullable=False)
"""Of a record in its slice."""


@dataclass(frozen=True)
class Narrowing:
    """What of the records goes to Spark, and what comes back.

    Attributes:
        sent: Names of the records' columns that the function reads.
        passed_on: Which of the records' columns a column of the output is, by its name; the others are computed.
        output: Schema of what the function returns.
    """

    sent: tuple[str, ...]
    passed_on: Mapping[str, str]
    output: StructType

    def schema_for_spark(self, records: StructType) -> StructType:
        """Return the schema of ``rows_for_spark``.

        Args:
            records: The schema of all columns.
        """
        return StructType([*(records[name] for name in self.sent), POSITION])

    def rows_for_spark(self, records: pa.Table) -> pa.Table:
        """Return the columns that are read, and the positions."""
        return records.select(list(self.sent)).append_column(POSITION.name, _positions(records))

    def whole(self, records: pa.Table, made: pa.Table) -> pa.Table:
        """Return what the function makes of the records.

        Args:
            records: All their columns.
            made: What Spark made of ``rows_for_spark``: the columns that are computed, and the positions.

        Raises:
            ValueError: A row has no position.
        """
        at = made[POSITION.name].combine_chunks()
        if at.null_count:
            raise ValueError("a row is of no record")
        are_all = at.equals(_positions(records))
        columns = []
        for name in self.output.names:
            own = self.passed_on.get(name)
            if own is None:
                columns.append(made[name])
            else:
                columns.append(records[own] if are_all else records[own].take(at))
        schema = to_arrow_schema(self.output, error_on_duplicated_field_names_in_struct=True)
        return pa.table(columns, names=self.output.names).cast(schema)


def _positions(records: pa.Table) -> pa.Array:
    return pa.array(np.arange(records.num_rows, dtype=np.int32))
