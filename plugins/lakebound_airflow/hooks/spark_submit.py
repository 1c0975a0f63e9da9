"""The provider's spark-submit hook for batch work beside streams: lowest priority, an environment of its own, one machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.landing.batch_command import behind_everything


class NiceSparkSubmitHook(SparkSubmitHook):
    """Submits behind everything else on the machine.

    Args:
        environment: The whole environment of the application: Airflow's own variables hold secrets that it has no need of.
        default_master: Where it runs when there is no such connection; the provider would say YARN.
    """

    def __init__(self, *, environment: Mapping[str, str], default_master: str, **kwargs: Any) -> None:
        # The provider's constructor already resolves the connection.
        self._environment = dict(environment)
        self._default_master = default_master
        super().__init__(**kwargs)

    @property
    def exit_code(self) -> int | None:
        """Of the application; None while it runs, and before it was started."""
        return self._submit_sp.returncode if self._submit_sp else None

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Start it, and return when it has ended."""
        return super().submit(application, **{"env": self._environment, **kwargs})

    def _resolve_connection(self) -> dict[str, Any]:
        resolved = super()._resolve_connection()
        try:
            self.get_connection(self._conn_id)
        except AirflowNotFoundException:
            resolved["master"] = self._default_master
        return resolved

    def _get_spark_binary_path(self) -> list[str]:
        beside = Path(sys.executable).parent / "spark-submit"
        return behind_everything([str(beside) if beside.exists() else self._connection["spark_binary"]])
