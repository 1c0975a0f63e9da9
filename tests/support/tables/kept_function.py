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
        session, by_job = records.sparkSession, is_scan(analysed(records))
        plan = self.plan(session, by_job=by_job, records=lambda: records)
        if plan is None:
            return self.called(records)
        if plan.narrowing is None:
            relation = LocalRelations(records.schema)
            made = (
                arrow_of(plan.over(session, analysed(records))) if by_job else plan.made(session, arrow_of(records), relation)
            )
            return LocalRelations(plan.schema)(session, made)
        relation = LocalRelations(plan.narrowing.schema_for_spark(records.schema), may_scan=True)
        made = plan.made(session, plan.narrowing.rows_for_spark(arrow_of(records)), relation)
        return LocalRelations(plan.narrowing.output)(session, plan.narrowing.whole(arrow_of(records), made))
