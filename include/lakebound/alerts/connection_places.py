"""Where the connections of channels are that need no running Airflow: an environment variable, or a file of secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from lakebound.settings import YamlAccess
from lakebound.spec.secret_bindings import CHANNELS
from lakebound.spec.secrets import operators_file


def variable_of(connection: str) -> str:
    """Return the name of the environment variable in which Airflow looks for a connection; its file has the same name."""
    return f"AIRFLOW_CONN_{connection.upper()}"


def file_of(connection: str, access: YamlAccess) -> Path | None:
    """Return the file of secrets that holds a connection, as an address or as JSON; None where there is none."""
    file = operators_file(variable_of(connection), CHANNELS, access)
    return file if file is not None and file.is_file() else None


def is_plain_address(text: str) -> bool:
    """Return whether a connection is the address of a web service, which Airflow would take apart in another way.

    To Airflow the path is the protocol, as in ``https://example.org/https``: of any other address it asks for another one.
    """
    protocol, mark, rest = text.strip().partition("://")
    if not mark or protocol.lower() not in ("http", "https") or rest.lower().startswith(("http://", "https://")):
        return False
    try:
        path = urlsplit(text.strip()).path.removeprefix("/")
    except ValueError:
        return True
    return path not in (("http", "https") if protocol.lower() == "https" else ("", "http", "https"))


def as_airflow_reads_it(text: str) -> str:
    """Return a connection so that Airflow asks for its address as it stands; what is no plain address stays as it is."""
    return json.dumps({"conn_type": "http", "host": text.strip()}) if is_plain_address(text) else text


def is_at_hand(connection: str, environ: Mapping[str, str], access: YamlAccess) -> bool:
    """Return whether a connection is found without asking Airflow or a secrets backend.

    Args:
        connection: Its id.
        environ: The environment that may hold it.
        access: Which files may hold it.
    """
    return variable_of(connection) in environ or file_of(connection, access) is not None
