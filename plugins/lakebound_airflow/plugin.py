"""What Lakebound adds to Airflow itself; registered by entry point (pyproject.toml)."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from lakebound_airflow import metrics_mount
from lakebound_airflow.links import SparkUiLink
from lakebound_airflow.page import navigation


class LakeboundPlugin(AirflowPlugin):
    """Operator links and pages; they must be known to the API server, which loads no DAG file."""

    name = "lakebound"
    operator_extra_links: ClassVar[list[Any]] = [SparkUiLink()]  # type: ignore[misc]
    # Airflow mounts them in this order, and the first prefix that fits takes a request: the longer ones come first.
    fastapi_apps: ClassVar[list[Any]] = [metrics_mount.FASTAPI_APP, navigation.FASTAPI_APP]  # type: ignore[misc]
    fastapi_root_middlewares: ClassVar[list[Any]] = [metrics_mount.ROOT_MIDDLEWARE]  # type: ignore[misc]
    external_views: ClassVar[list[Any]] = [navigation.EXTERNAL_VIEW]  # type: ignore[misc]
