"""A function called by its kept plan as an application does it, for DataFrames of few rows."""

from __future__ import annotations

from pyspark.sql import DataFrame

from lakebound_spark.batch.kept_plan import analysed, is_scan
from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.batch.plan_keeper import PlanKeeper


class KeptFunction(PlanKeeper):
    """A function, and the plan that is kept of it."""

    def __call__(self, records: DataFrame) -> DataFrame:
        """Return what the function makes of the records, as rows if its plan was used."""
        made = self.by_spark(records)
        narrowing = self._used.narrowing if self._used is not None else None
        if narrowing is None:
            return made
        rows = narrowing.whole(arrow_of(records), arrow_of(made))
        return LocalRelations(narrowing.output)(records.sparkSession, rows)

    def by_spark(self, records: DataFrame) -> DataFrame:
        """Return what Spark makes of the records: without what stays in Python where the plan was used."""
        session, by_job = records.sparkSession, is_scan(analysed(records))
        self._used = self.plan(session, by_job=by_job, records=lambda: records)
        if self._used is None:
            return self.called(records)
        narrowing = self._used.narrowing
        if narrowing is None:
            return self._used.over(session, analysed(records))
        relation = LocalRelations(narrowing.schema_for_spark(records.schema), may_scan=True)
        sent = relation(session, narrowing.rows_for_spark(arrow_of(records)))
        return self._used.over(session, analysed(sent))
