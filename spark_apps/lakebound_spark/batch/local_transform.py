"""The pipeline's transform on rows that the driver holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.plan_keeper import PlanKeeper
from lakebound_spark.batch.transform import Transform


class LocalTransform:
    """Applies one pipeline's function to decoded rows, without a scan of Kafka and without Spark's decoding in the plan."""

    def __init__(self, transform: Transform, schema: StructType, versions: Callable[[], Mapping[str, str]]) -> None:
        """Call nothing yet.

        Args:
            transform: The pipeline's function.
            schema: Of its input, in every lane (``lakebound_spark.batch.transform.planned_input``).
            versions: What differs between versions of the reference data that it reads, for those of the present, by name.
        """
        self._transform = PlanKeeper(transform, versions)
        self._relation = LocalRelations(schema, may_scan=True)

    def __call__(self, session: SparkSession, held: pa.Table) -> pa.Table:
        """Return what the function makes of the rows.

        Args:
            session: That of the batch.
            held: Decoded records, with ``_kafka``.
        """
        return arrow_of(self._transform(self._relation(session, held)))
