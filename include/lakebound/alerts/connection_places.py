"""Where the connections of channels are that need no running Airflow: an environment variable, or a file of secrets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lakebound.settings import YamlAccess


def variable_of(connection: str) -> str:
    """Return the name of the environment variable in which Airflow looks for a connection; its file has the same name."""
    return f"AIRFLOW_CONN_{connection.upper()}"


def file_of(connection: str, access: YamlAccess) -> Path | None:
    """Return the file of secrets that holds a connection, as an address or as JSON; None where there is none."""
    file = access.secret_file(variable_of(connection))
    return file if file is not None and file.is_file() else None


def is_at_hand(connection: str, environ: Mapping[str, str], access: YamlAccess) -> bool:
    """Return whether a connection is found without asking Airflow or a secrets backend."""
    return variable_of(connection) in environ or file_of(connection, access) is not None
