"""What a transform may need of Lakebound: an explode whose rows stay apart."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lakebound.tables import KAFKA_COLUMN


def explode(frame: DataFrame, column: str, into: str, *, keep_empty: bool = False) -> DataFrame:
    """Return one row per element of an array, numbered in ``_kafka.ordinal``.

    The ordinal keeps the rows of one record apart, so that a replay can be recognised and a proof can count.

    Args:
        frame: Rows with ``_kafka``.
        column: The array; it is dropped.
        into: Name of the column that takes the element.
        keep_empty: Whether a record with an empty or null array gives one row (with a null) instead of none.
    """
    generator = F.posexplode_outer if keep_empty else F.posexplode
    others = [name for name in frame.columns if name not in (column, KAFKA_COLUMN)]
    exploded = frame.select(*others, KAFKA_COLUMN, generator(column).alias("_position", into))
    ordinal = F.coalesce(F.col("_position"), F.lit(0))
    numbered = F.col(KAFKA_COLUMN).withField("ordinal", ordinal.cast("int"))
    return exploded.select(*others, into, numbered.alias(KAFKA_COLUMN))
