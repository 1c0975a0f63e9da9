"""Prints, as JSON, which connections are found in Airflow's database, and in no secrets backend or variable before it.

``python -m lakebound_airflow.notifications.connection_search CONNECTION...`` is a process of its own for ``lakebound check``,
as the core does not import Airflow.
"""

from __future__ import annotations

import contextlib
import json
import sys

from airflow.sdk.execution_time.supervisor import ensure_secrets_backend_loaded
from airflow.secrets.metastore import MetastoreBackend


def main(connections: list[str]) -> int:
    """Print those that only the database has; return the exit code."""
    print(json.dumps([connection for connection in connections if _is_in_database_only(connection)]))
    return 0


def _is_in_database_only(connection: str) -> bool:
    for backend in ensure_secrets_backend_loaded():
        # A backend that does not answer has it as little as one that does not know it: a hook goes on to the next one, too.
        with contextlib.suppress(Exception):
            if backend.get_connection(conn_id=connection):
                return isinstance(backend, MetastoreBackend)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
