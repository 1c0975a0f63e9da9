"""What operators share that run one Spark application beside the streams and wait for its end.

They compose the provider's hook. Its operator can find a job again after a worker died; these applications need no such thing:
they may be killed anywhere and be run again.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException
from airflow.utils.types import DagRunType

from lakebound.control.folder import ControlFolder
from lakebound.errors import LakeboundError
from lakebound.landing.batch_command import ANOTHER_RUN, BatchOrders, driver_memory, run_spec_arguments
from lakebound.landing.spark_command import app_name, run_environment
from lakebound.settings import Settings
from lakebound_airflow.hooks.spark_submit import NiceSparkSubmitHook
from lakebound_airflow.operators.starvation import ended_if_starved

Context = Mapping[str, Any]
Report = TypeVar("Report")


class StarvedRunError(LakeboundError):
    """A run behind everything else got too little of the cores, and was ended."""

    def __init__(self, pipeline: str, noun: str, run_id: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: the {noun} {run_id} got hardly any of this machine's cores, and was ended; a run with an "
            "ordinary share does its work"
        )


@dataclass(frozen=True)
class BatchRun(Generic[Report]):
    """One run of an application.

    Attributes:
        application: Its entry point's name in ``settings.apps``.
        orders: What it is told; they name the run, and say whether a person waits for it.
        conf: Its Spark settings.
        read_report: Returns the report of a run by its id, None where it left none.
        record_end: Keeps for the alerts why the run ended without a report.
        is_starved: Decides by the CPU seconds that a run on this machine used, and the seconds that it took, whether it gets
            too little of the cores and is ended; None: it never is. A run with an ordinary share never is.
    """

    application: str
    orders: BatchOrders
    conf: Mapping[str, str]
    read_report: Callable[[ControlFolder, str], Report | None]
    record_end: Callable[[str], None]
    is_starved: Callable[[float, float], bool] | None = None


class BatchOperator(BaseOperator):
    """Works on one pipeline's tables in an application on one core, at the lowest priority unless a person triggered it.

    A retry starts a new one.

    Args:
        pipeline: Its name.
        conn_id: Connection that says on which Spark it runs; where there is none, it runs on this machine.
        verb: What it does, as its runs' ids begin.
        noun: What a run is called in messages.
    """

    def __init__(self, *, pipeline: str, conn_id: str, verb: str, noun: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline, self.conn_id, self.verb, self.noun = pipeline, conn_id, verb, noun
        self.hook: NiceSparkSubmitHook | None = None

    def on_kill(self) -> None:
        """End the application with the task."""
        if self.hook is not None:
            self.hook.on_kill()

    def run_id(self, context: Context) -> str:
        """Return an id for a run that this try starts now."""
        return f"{self.verb}-{self.pipeline}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{context['ti'].try_number}"

    def is_waited_for(self, context: Context) -> bool:
        """Whether a person triggered the run: it is then no work that may wait until the machine is idle."""
        return getattr(context.get("dag_run"), "run_type", None) == DagRunType.MANUAL

    def run_application(self, run: BatchRun[Report], settings: Settings) -> tuple[Report, bool]:
        """Run it to its end; return its report, and whether it ended well.

        Args:
            run: What to run.
            settings: This machine's places.

        Raises:
            AirflowSkipException: Another run of the pipeline is under way.
            AirflowException: It ended without a report.
            StarvedRunError: It was ended because it got too little of the cores.
        """
        orders, failure = run.orders, None
        self.hook = hook = NiceSparkSubmitHook(
            environment=run_environment(orders, settings),
            log_file=orders.control.log(orders.app_id),
            progress=f"{self.verb}: ",
            is_waited_for=orders.is_waited_for,
            conf=dict(run.conf),
            conn_id=self.conn_id,
            driver_memory=driver_memory(orders, settings),
            name=app_name(orders.app_id),
            application_args=run_spec_arguments(orders),
        )
        was_starved = threading.Event()
        try:
            with contextlib.ExitStack() as watched:
                if run.is_starved is not None and not orders.is_waited_for and hook.is_here:
                    was_starved = watched.enter_context(ended_if_starved(lambda: hook.pid, run.is_starved))
                hook.submit(str(settings.apps / run.application))
        except AirflowException as exc:
            if hook.exit_code == ANOTHER_RUN:
                raise AirflowSkipException(f"another {self.noun} of {self.pipeline} is active") from None
            failure = exc
        report = run.read_report(orders.control, orders.app_id)
        if report is not None:
            return report, failure is None
        if was_starved.is_set():
            raise StarvedRunError(self.pipeline, self.noun, orders.app_id)
        if failure is not None:
            run.record_end(f"it ended with exit code {hook.exit_code} and without a report")
            raise AirflowException(
                f"{self.noun} {orders.app_id} ended with exit code {hook.exit_code}; its log: {hook.log_file}"
            ) from None
        run.record_end("it ended without a report")
        raise AirflowException(f"{self.noun} {orders.app_id} ended without a report; its log: {hook.log_file}")
