"""Prints, as JSON, which connections are in Airflow's database, and nowhere where ``lakebound watch`` looks.

``python -m lakebound_airflow.notifications.connection_search CONNECTION...`` is a process of its own for ``lakebound check``,
as the core does not import Airflow.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded
from airflow.secrets.metastore import MetastoreBackend


def main(connections: list[str]) -> int:
    """Print those that only the database has; return the exit code."""
    print(json.dumps([connection for connection in connections if _is_in_database_only(connection)]))
    return 0


def _is_in_database_only(connection: str) -> bool:
    # These are the places where a process looks that has no part in a running Airflow.
    return not any(_has(backend, connection) for backend in ensure_secrets_backend_loaded()) and _has(
        MetastoreBackend(), connection
    )


def _has(backend: Any, connection: str) -> bool:
    """Return whether a place has it; one that does not answer has it as little as one that does not know it."""
    with contextlib.suppress(Exception):
        return backend.get_connection(conn_id=connection) is not None
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
