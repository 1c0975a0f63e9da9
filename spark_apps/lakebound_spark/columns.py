"""What a transform may need of Lakebound: an explode whose rows stay apart, and numbers that are times."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakebound.formats.epoch_units import PER_SECOND, Unit
from lakebound.formats.times import FIRST_MS, LAST_MS
from lakebound.spec.pipeline import KAFKA_COLUMN


def explode(frame: DataFrame, column: str, into: str, *, keep_empty: bool = False) -> DataFrame:
    """Return one row per element of an array, in the order of the array, as ``_kafka.ordinal`` says.

    Without it, rows of one record are numbered by their values. In real time nobody numbers them, so there it is needed.

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


def from_epoch(number: str | Column, unit: Unit) -> Column:
    """Return a number of milliseconds, microseconds or nanoseconds since 1970 as a timestamp.

    It is null where the number is of no year from 1 to 9999. Spark's own functions fail on such numbers, and with them a batch.

    Args:
        number: The column, or its name.
        unit: What it counts; Spark reads seconds by itself, where the schema says TIMESTAMP.
    """
    value = F.col(number) if isinstance(number, str) else number
    per_second = PER_SECOND[unit]
    first, last = FIRST_MS * per_second // 1000, (LAST_MS + 1) * per_second // 1000 - 1
    # As a decimal: a division of whole numbers is one of floating point numbers in Spark, and loses digits.
    micros = (value.cast("decimal(38,0)") * F.lit(1_000_000) / F.lit(per_second)).cast("bigint")
    return F.when(value.between(max(first, -(2**63)), min(last, 2**63 - 1)), F.timestamp_micros(micros))
