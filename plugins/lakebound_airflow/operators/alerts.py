"""The operator behind the DAG ``alerts``: one look at every pipeline's files and folder of state, and one round of alerts.

The first round of a day also makes the daily report of the day before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseOperator

from lakebound.settings import load_settings
from lakebound.tables.declared import owned_pipelines

Context = Mapping[str, Any]


class AlertsOperator(BaseOperator):
    """Runs one round; XCom: what was said, and how many messages wait for a channel that does not take them."""

    ui_color = "#f8cecc"

    def execute(self, context: Context) -> dict[str, Any]:
        """Look, reconcile, send.

        Raises:
            InvalidAlertsError: ``alerts.yaml`` is wrong. The default webhook was told so, and of everything else.
        """
        from lakebound.alerts.load import alerts_file, load_alerts
        from lakebound_airflow.notifications.alerts import report_last_day, tell
        from lakebound_airflow.watch.looks import look_again_at_airflow, look_at_files

        settings = load_settings()
        loaded = owned_pipelines(settings)
        problems = look_at_files(settings, loaded)
        problems += look_again_at_airflow(settings, loaded.specs.values())
        problems += report_last_day(settings)
        for problem in problems:
            self.log.error(problem)
        report = tell(settings)
        load_alerts(alerts_file(settings))
        return {
            "said": [{"kind": one.kind.value, "pipeline": one.pipeline, "id": one.id} for one in report.said],
            "waiting": report.delivered.left,
        }
