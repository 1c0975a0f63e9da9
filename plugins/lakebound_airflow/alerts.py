"""Where ``health_is_late`` lay before: Airflow's database names this path for deadlines that were set before an upgrade."""

from __future__ import annotations

from lakebound_airflow.notifications.alerts import health_is_late

__all__ = ["health_is_late"]
