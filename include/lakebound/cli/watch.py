"""``lakebound watch``: looks at the pipelines and sends alerts, without a running Airflow."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

INTERVAL_SECONDS = 60.0


def watch(
    once: Annotated[bool, typer.Option("--once", help="Run one round, and end. Exit code 1 if something went wrong.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", min=1, help="How often a round runs, in seconds.")
    ] = INTERVAL_SECONDS,
) -> None:
    """Look at the pipelines and send alerts, also while Airflow is down. Runs until it is stopped.

    It does what the DAGs `alerts` and `checkpoint_health` do. If these DAGs run as well, no message is sent twice. It also
    checks Airflow itself. A second watch on the same LAKEBOUND_HOME ends at once with exit code 1. How to run it as a service:
    docs/how-to/alerts.md.
    """
    from lakebound.alerts.airflow_process import airflow_environment
    from lakebound.settings import load_settings

    command = [sys.executable, "-m", "lakebound_airflow.watch", "--interval", str(interval), *(["--once"] if once else [])]
    # This process becomes the watch, so that it gets the signals, and no second one waits for it.
    os.execve(sys.executable, command, airflow_environment(load_settings()))
