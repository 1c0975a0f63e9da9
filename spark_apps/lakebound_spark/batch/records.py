"""Kafka's columns of some offsets, which Spark is asked for only where Spark reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakebound.ledger.entry import TopicOffsets, intervals_of


class Records:
    """The records of a batch: where the driver reads them itself, Spark makes no plan of them."""

    def __init__(self, session: SparkSession, make: Callable[[], DataFrame]) -> None:
        """Make nothing yet.

        Args:
            session: Spark's of this batch.
            make: Returns Kafka's columns of the records.
        """
        self.session = session
        self._make = make

    @cached_property
    def frame(self) -> DataFrame:
        """Kafka's columns."""
        return self._make()

    def among(self, offsets: Mapping[str, TopicOffsets]) -> Records:
        """Return those of them with these offsets."""
        return Records(self.session, lambda: self.frame.where(in_offsets(offsets)))


def in_offsets(offsets: Mapping[str, TopicOffsets]) -> Column:
    """Return the condition that a record's offset is among ``offsets``."""
    pieces = [
        (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") >= start) & (F.col("offset") < end)
        for topic, partition, intervals in intervals_of(dict(offsets))
        for start, end in intervals
    ]
    return reduce(or_, pieces)
