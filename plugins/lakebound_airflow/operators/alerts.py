"""The operator behind the DAG ``alerts``: one look at every pipeline's folder of state, and one round of alerts.

The first round of a day also makes the daily report of the day before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseOperator

from lakebound.settings import load_settings
from lakebound_airflow.pipelines import control_of, valid_specs

Context = Mapping[str, Any]


class AlertsOperator(BaseOperator):
    """Runs one round; XCom: what was said, and how many messages wait for a channel that does not take them."""

    ui_color = "#f8cecc"

    def execute(self, context: Context) -> dict[str, Any]:
        """Look, reconcile, send.

        Raises:
            InvalidAlertsError: ``alerts.yaml`` is wrong. The default webhook was told so, and of everything else.
        """
        from lakebound.alerts.lateness import look_whether_health_is_late, take_back_late
        from lakebound.alerts.load import alerts_file, load_alerts
        from lakebound.alerts.look import look_at
        from lakebound_airflow.notifications.alerts import report_last_day, tell

        settings = load_settings()
        for spec in valid_specs(settings):
            for problem in look_at(spec, settings):
                self.log.error(problem)
            take_back_late(control_of(spec.pipeline, settings))
        look_whether_health_is_late(settings)
        for problem in report_last_day(settings):
            self.log.error(problem)
        report = tell(settings)
        load_alerts(alerts_file(settings))
        return {
            "said": [{"kind": one.kind.value, "pipeline": one.pipeline, "id": one.id} for one in report.said],
            "waiting": report.delivered.left,
        }
