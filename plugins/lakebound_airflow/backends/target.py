"""Which backend a pipeline's applications run on, and which Spark.

The choice is made per pipeline, first match wins:

1. the Airflow connection ``lakebound_spark_<pipeline>``
2. the Airflow connection ``lakebound_spark``
3. ``LAKEBOUND_BACKEND`` (default ``local``) with ``LAKEBOUND_SPARK_MASTER`` and ``LAKEBOUND_SPARK_REST``

A connection is of type ``spark``. Host ``local[2]`` means ``local``. Host ``spark://master`` and a port mean ``standalone``,
with the REST port of the master in the extra ``rest-port`` (default 6066); with the extra ``deploy_mode`` ``client`` they mean
``local``: the driver stays on Airflow's worker, and its executors are the cluster's. (The provider's own ``deploy-mode`` is
not read: Airflow's form fills it in.) Host ``k8s://https://…`` means ``kubernetes``. Memory, cores and settings of
Spark may be in the extra, too: ``driver_memory``, ``driver_cores``, ``executor_memory``, ``executor_cores``, ``max_cores`` and
``spark_conf``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakebound.control.submission import BackendName
from lakebound.errors import LakeboundError
from lakebound.landing.spark_command import is_local
from lakebound.settings import Settings
from lakebound.spec.spark import InstallationSpark, SparkSpec, installation_spark

DEFAULT_REST_PORT = 6066
DEPLOY_MODES = ("cluster", "client")
_KUBERNETES = "k8s://"
_RESOURCES = tuple(name for name in SparkSpec.model_fields if name != "conf")


@dataclass(frozen=True)
class Target:
    """Which backend, and which Spark. Holds no secret.

    Attributes:
        rest_url: Standalone: the master's REST server, for example ``http://master:6066``.
        spark: Memory, cores and settings of Spark that the connection names.
        key_connection: Standalone: the connection whose password is the key of the REST server; None where it has none.
    """

    backend: BackendName = BackendName.LOCAL
    master: str = "local[2]"
    rest_url: str | None = None
    spark: InstallationSpark = field(default_factory=InstallationSpark)
    key_connection: str | None = None


class UnknownBackendError(LakeboundError):
    """The backend that was asked for does not exist, or its address is not of its form."""

    def __init__(self, where: str, found: str) -> None:
        names = ", ".join(BackendName)
        super().__init__(f"{where}: {found!r} is not a supported backend; supported are: {names}. See docs/how-to/backends.md")


class UnknownDeployModeError(LakeboundError):
    """A connection names a place for the driver that does not exist."""

    def __init__(self, conn_id: str, found: object) -> None:
        super().__init__(
            f"connection {conn_id!r}, extra deploy_mode: {found!r} is neither 'cluster' (the driver runs on a worker of the "
            f"cluster, the default) nor 'client' (it runs on Airflow's worker). See docs/how-to/backends.md"
        )


def target_from_environment(settings: Settings, environ: Mapping[str, str] | None = None) -> Target:
    """Return the target that the environment variables name.

    Args:
        settings: This machine's settings.
        environ: The environment; None: this process's.

    Raises:
        UnknownBackendError: There is no such backend.
    """
    env = os.environ if environ is None else environ
    name = env.get("LAKEBOUND_BACKEND") or BackendName.LOCAL
    try:
        backend = BackendName(name)
    except ValueError as exc:
        raise UnknownBackendError("LAKEBOUND_BACKEND", name) from exc
    if backend is BackendName.KUBERNETES and not settings.spark_master.startswith(_KUBERNETES):
        raise UnknownBackendError("LAKEBOUND_SPARK_MASTER, with LAKEBOUND_BACKEND=kubernetes", settings.spark_master)
    if backend is not BackendName.STANDALONE:
        return Target(backend, settings.spark_master)
    return Target(backend, settings.spark_master, env.get("LAKEBOUND_SPARK_REST") or rest_url_of(settings.spark_master))


def target_from_connection(
    conn_id: str, host: str, port: int | None, extra: Mapping[str, object], *, has_password: bool = False
) -> Target:
    """Return the target that an Airflow connection of type ``spark`` names.

    Args:
        conn_id: Id of the connection, for the message.
        host: Host field of the connection: ``local[...]`` or ``spark://...``.
        port: Port field of the connection; None when it is empty. A port in ``host`` counts before it.
        extra: Extra field of the connection; the module says what is read from it.
        has_password: Whether the connection has a password: the key of the REST server.

    Raises:
        UnknownBackendError: Its host is neither ``local[...]`` nor ``spark://...``.
        UnknownDeployModeError: Its extra names another place for the driver than there is.
        SparkSettingsError: What its extra says of Spark is wrong.
    """
    spark, mode = spark_of_extra(conn_id, extra), extra.get("deploy_mode", "cluster")
    if mode not in DEPLOY_MODES:
        raise UnknownDeployModeError(conn_id, mode)
    if is_local(host):
        return Target(BackendName.LOCAL, host, spark=spark)
    if not host.startswith(("spark://", _KUBERNETES)):
        raise UnknownBackendError(f"connection {conn_id!r}, host", host)
    master = host if port is None or host.rpartition(":")[2].isdigit() else f"{host}:{port}"
    if host.startswith(_KUBERNETES):
        return Target(BackendName.KUBERNETES, master, spark=spark)
    if mode == "client":
        return Target(BackendName.LOCAL, master, spark=spark)
    rest_url = rest_url_of(master, int(str(extra.get("rest-port", DEFAULT_REST_PORT))), str(extra.get("rest-scheme", "http")))
    return Target(BackendName.STANDALONE, master, rest_url, spark, conn_id if has_password else None)


def spark_of_extra(conn_id: str, extra: Mapping[str, object]) -> InstallationSpark:
    """Return what the extra of a connection says of Spark.

    Args:
        conn_id: Id of the connection, for the message.
        extra: Its extra; other keys than those of Spark's resources are not looked at.

    Raises:
        SparkSettingsError: It is wrong.
    """
    body: dict[str, Any] = {name: extra[name] for name in _RESOURCES if extra.get(name) not in (None, "")}
    if extra.get("spark_conf"):
        body["conf"] = extra["spark_conf"]
    return installation_spark(f"connection {conn_id!r}, extra", body)


def rest_url_of(master: str, rest_port: int = DEFAULT_REST_PORT, scheme: str = "http") -> str:
    """Return the address of a standalone master's REST server."""
    host = master.removeprefix("spark://").rpartition(":")[0] or master.removeprefix("spark://")
    return f"{scheme}://{host}:{rest_port}"
