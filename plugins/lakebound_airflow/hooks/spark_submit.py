"""The provider's spark-submit hook for batch work beside streams: low priority, an environment of its own, one machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.control.private_files import make_private_folder, open_private
from lakebound.landing.batch_command import MASTER, behind_everything

_ID_OF_DRIVER = re.compile(r".{0,200}(?:application_|driver-|pod name: |submission ID spark:|[eE]xit code: )[\w-]+\W{0,3}")


class NiceSparkSubmitHook(SparkSubmitHook):
    """Submits behind everything else on the machine, unless a person waits for the end.

    Args:
        environment: The whole environment of the application: Airflow's own variables hold secrets that it has no need of.
        log_file: Gets all that the application says. Errors in it may quote records, so Airflow's log does not.
        is_waited_for: Whether a person waits for the end.
        progress: Begins what is meant for a person; such lines stand in Airflow's log, too.
        kwargs: Of the provider's hook.
    """

    def __init__(
        self, *, environment: Mapping[str, str], log_file: Path, progress: str, is_waited_for: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._environment = dict(environment)
        self.log_file = log_file
        self._progress = progress
        self._is_waited_for = is_waited_for

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

    @property
    def pid(self) -> int | None:
        """The first process of the application; None before it was started."""
        return self._submit_sp.pid if self._submit_sp else None

    @property
    def is_here(self) -> bool:
        """Whether all of its processes are on this machine."""
        return str(self._connection["master"]).startswith("local")

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """Start it, and return when it has ended."""
        return super().submit(application, **{"env": self._environment, **kwargs})

    def _process_spark_submit_log(self, itr: Iterator[Any]) -> None:
        super()._process_spark_submit_log(self._for_airflow(itr))

    def _for_airflow(self, lines: Iterator[Any]) -> Iterator[Any]:
        """Keep every line in the application's log; yield those that Airflow may show, or learns the driver's id from."""
        make_private_folder(self.log_file.parent)
        with open_private(self.log_file, "a") as log:
            for line in lines:
                log.write(line)
                log.flush()
                if self._progress in line or _ID_OF_DRIVER.fullmatch(line.strip()):
                    yield line

    def _get_spark_binary_path(self) -> list[str]:
        # The provider's public parameter takes one program, and not the one that goes behind everything first.
        beside = Path(sys.executable).parent / "spark-submit"
        command = [str(beside) if beside.exists() else self._connection["spark_binary"]]
        return command if self._is_waited_for else behind_everything(command)
