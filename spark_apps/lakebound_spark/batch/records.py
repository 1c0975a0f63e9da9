"""Kafka's columns of some offsets, which Spark is asked for only where Spark reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound.ledger.entry import Offsets, intervals_of


class Records:
    """The records of a batch: where the driver reads them itself, Spark makes no plan of them."""

    def __init__(self, session: SparkSession, offsets: Offsets, make: Callable[[], DataFrame]) -> None:
        """Make nothing yet.

        Args:
            session: Spark's of this batch.
            offsets: Which records they are.
            make: Returns Kafka's columns of the records.
        """
        self.session = session
        self._offsets = offsets
        self._make = make

    @cached_property
    def frame(self) -> DataFrame:
        """Kafka's columns."""
        return self._make()

    def among(self, offsets: Offsets) -> Records:
        """Return those of them with these offsets."""
        if offsets == self._offsets:
            return self
        return Records(self.session, offsets, lambda: self.frame.where(in_offsets(offsets)))


def in_offsets(offsets: Offsets) -> Column:
    """Return the condition that a record's offset is among ``offsets``."""
    pieces = [
        (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") >= start) & (F.col("offset") < end)
        for topic, partition, intervals in intervals_of(offsets)
        for start, end in intervals
    ]
    return reduce(or_, pieces)
