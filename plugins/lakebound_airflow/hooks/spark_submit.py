"""The provider's spark-submit hook for batch work beside streams: lowest priority, an environment of its own, one machine."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.landing.batch_command import MASTER, behind_everything


class NiceSparkSubmitHook(SparkSubmitHook):
    """Submits behind everything else on the machine.

    Args:
        environment: The whole environment of the application: Airflow's own variables hold secrets that it has no need of.
        kwargs: Of the provider's hook.
    """

    def __init__(self, *, environment: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._environment = dict(environment)

    @classmethod
    def get_connection(cls, conn_id: str) -> Connection:
        """Return the connection; where there is none, one to Spark on this machine. The provider would say YARN."""
        try:
            return super().get_connection(conn_id)
        except AirflowNotFoundException:
            return Connection(conn_id=conn_id, conn_type="spark", host=MASTER)

    @property
    def exit_code(self) -> int | None:
        """Of the application; None while it runs, and before it was started."""
        return self._submit_sp.returncode if self._submit_sp else None

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Start it, and return when it has ended."""
        return super().submit(application, **{"env": self._environment, **kwargs})

    def _get_spark_binary_path(self) -> list[str]:
        # The provider's public parameter takes one program, and not the one that goes behind everything first.
        beside = Path(sys.executable).parent / "spark-submit"
        return behind_everything([str(beside) if beside.exists() else self._connection["spark_binary"]])
