"""What Lakebound adds to Airflow itself; registered by entry point (pyproject.toml)."""

from __future__ import annotations

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from lakebound_airflow.links import SparkUiLink


class LakeboundPlugin(AirflowPlugin):
    """Operator links; they must be known to the API server, which loads no DAG file."""

    name = "lakebound"
    operator_extra_links: ClassVar[list[Any]] = [SparkUiLink()]  # type: ignore[misc]
