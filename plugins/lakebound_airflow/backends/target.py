"""Which backend a pipeline's applications run on, and which Spark.

The choice is made per pipeline, first match wins:

1. the Airflow connection ``lakebound_spark_<pipeline>``
2. the Airflow connection ``lakebound_spark``
3. ``LAKEBOUND_BACKEND`` (default ``local``) with ``LAKEBOUND_SPARK_MASTER`` and ``LAKEBOUND_SPARK_REST``

A connection is of type ``spark``: host ``local[2]`` means ``local``; host ``spark://master`` and a port mean
``standalone``, with the REST port of the master in the extra ``rest-port`` (default 6066).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from lakebound.control.submission import BackendName
from lakebound.errors import LakeboundError
from lakebound.landing.spark_command import is_local
from lakebound.settings import Settings

DEFAULT_REST_PORT = 6066


@dataclass(frozen=True)
class Target:
    """Which backend, and which Spark. Holds no secret.

    Attributes:
        rest_url: Standalone: the master's REST server, for example ``http://master:6066``.
    """

    backend: BackendName = BackendName.LOCAL
    master: str = "local[2]"
    rest_url: str | None = None


class UnknownBackendError(LakeboundError):
    """The backend that was asked for does not exist, or its address is not of its form."""

    def __init__(self, where: str, found: str) -> None:
        names = ", ".join(BackendName)
        super().__init__(f"{where}: {found!r} is not a supported backend; supported are: {names}. See docs/how-to/backends.md")


def target_from_environment(settings: Settings, environ: Mapping[str, str] | None = None) -> Target:
    """Return the target that the environment variables name.

    Raises:
        UnknownBackendError: There is no such backend.
    """
    env = os.environ if environ is None else environ
    name = env.get("LAKEBOUND_BACKEND") or BackendName.LOCAL
    try:
        backend = BackendName(name)
    except ValueError as exc:
        raise UnknownBackendError("LAKEBOUND_BACKEND", name) from exc
    if backend is BackendName.LOCAL:
        return Target(backend, settings.spark_master)
    return Target(backend, settings.spark_master, env.get("LAKEBOUND_SPARK_REST") or rest_url_of(settings.spark_master))


def target_from_connection(conn_id: str, host: str, port: int | None, extra: Mapping[str, object]) -> Target:
    """Return the target that an Airflow connection of type ``spark`` names.

    Args:
        conn_id: Id of the connection, for the message.
        host: Host field of the connection: ``local[...]`` or ``spark://...``.
        port: Port field of the connection; None when it is empty. A port in ``host`` counts before it.
        extra: Extra field of the connection; ``rest-port`` and ``rest-scheme`` are read from it.

    Raises:
        UnknownBackendError: Its host is neither ``local[...]`` nor ``spark://...``.
    """
    if is_local(host):
        return Target(BackendName.LOCAL, host)
    if not host.startswith("spark://"):
        raise UnknownBackendError(f"connection {conn_id!r}, host", host)
    master = host if port is None or host.rpartition(":")[2].isdigit() else f"{host}:{port}"
    rest_port = int(str(extra.get("rest-port", DEFAULT_REST_PORT)))
    return Target(BackendName.STANDALONE, master, rest_url_of(master, rest_port, str(extra.get("rest-scheme", "http"))))


def rest_url_of(master: str, rest_port: int = DEFAULT_REST_PORT, scheme: str = "http") -> str:
    """Return the address of a standalone master's REST server."""
    host = master.removeprefix("spark://").rpartition(":")[0] or master.removeprefix("spark://")
    return f"{scheme}://{host}:{rest_port}"
