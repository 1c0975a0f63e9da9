"""The environment of processes that use Airflow's packages, which the core does not import."""

from __future__ import annotations

import os
from pathlib import Path

from lakebound.settings import Settings

SEES_DATABASE = {"_AIRFLOW_PROCESS_CONTEXT": "server"}
"""Lets a process look for connections in Airflow's database, too. Without it, one sees those that need no running Airflow."""


def airflow_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of such a process; Airflow's home is that of the embedded one where no other is named.

    Args:
        settings: This machine's; the process gets the same.
    """
    found = {**os.environ, **settings.environment()}
    # Without a home, Airflow makes one in the user's.
    found.setdefault("AIRFLOW_HOME", str(settings.home / "airflow"))
    if not Path(found["AIRFLOW_HOME"], "airflow.cfg").exists():
        # Airflow would write one while it is imported, and fail at that on a full disk.
        found.setdefault("AIRFLOW_CONFIG", os.devnull)
    for name in SEES_DATABASE:
        found.pop(name, None)
    return found
