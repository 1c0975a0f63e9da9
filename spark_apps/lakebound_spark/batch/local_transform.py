"""The pipeline's transform on rows that the driver holds."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.passed_columns import Narrowing
from lakebound_spark.batch.plan_keeper import PlanKeeper

_FEW = 100
"""Rows for which the function is called beside the batches: only its plan is looked at."""


class LocalTransform:
    """Applies one pipeline's function to decoded rows, without a scan of Kafka and without Spark's decoding in the plan."""

    def __init__(self, keeper: PlanKeeper, schema: StructType) -> None:
        """Call nothing yet.

        Args:
            keeper: Of the pipeline's function.
            schema: Of its input, in every lane (``lakebound_spark.batch.transform.planned_input``).
        """
        self._keeper = keeper
        self._schema = schema
        self._relation = LocalRelations(schema, may_scan=True)
        self._narrow: tuple[tuple[str, ...], LocalRelations] | None = None

    def __call__(self, session: SparkSession, held: pa.Table) -> pa.Table:
        """Return what the function makes of the rows.

        Args:
            session: That of the batch.
            held: Decoded records, with ``_kafka``.
        """
        try:
            return self._made(session, held)
        except Exception:
            self._keeper.forget(session)
            raise

    def _made(self, session: SparkSession, held: pa.Table) -> pa.Table:
        by_job = self._relation.is_scan(session, held.num_rows)
        plan = self._keeper.plan(session, by_job=by_job, records=lambda: self._relation(session, held.slice(0, _FEW)))
        if plan is None:
            return arrow_of(self._keeper.called(self._relation(session, held)))
        if plan.narrowing is None:
            return plan.made(session, held, self._relation)
        sent = plan.narrowing.rows_for_spark(held)
        return plan.narrowing.whole(held, plan.made(session, sent, self._narrow_relation(plan.narrowing)))

    def _narrow_relation(self, narrowing: Narrowing) -> LocalRelations:
        """Return what makes relations of the columns that go to Spark."""
        if self._narrow is None or self._narrow[0] != narrowing.sent:
            self._narrow = narrowing.sent, LocalRelations(narrowing.schema_for_spark(self._schema), may_scan=True)
        return self._narrow[1]
