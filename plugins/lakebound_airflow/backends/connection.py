"""Which Spark a pipeline runs on, from Airflow's connections; asked in a worker, never while DAGs are parsed."""

from __future__ import annotations

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from lakebound.landing.spark_resources import with_installation
from lakebound.settings import Settings
from lakebound_airflow.backends.target import Target, spark_of_extra, target_from_connection, target_from_environment

SPARK_CONN_ID = "lakebound_spark"


def choose_target(conn_id: str, pipeline: str, settings: Settings) -> Target:
    """Return the pipeline's own connection's target, else the shared connection's, else the environment's.

    Args:
        conn_id: Id of the connection that all pipelines share.
        pipeline: Name of the pipeline; its own connection is ``<conn_id>_<pipeline>``.
        settings: This machine's settings; they name the Spark master when there is no connection.

    Raises:
        UnknownBackendError: What was found names no backend.
    """
    for candidate in (f"{conn_id}_{pipeline}", conn_id):
        try:
            connection = BaseHook.get_connection(candidate)
        except AirflowNotFoundException:
            continue
        return target_from_connection(
            candidate,
            connection.host or "",
            connection.port,
            connection.extra_dejson,
            has_password=bool(connection.password),
        )
    return target_from_environment(settings)


def with_connection(conn_id: str, settings: Settings) -> Settings:
    """Return settings with what a connection's extra says of Spark; unchanged where there is no such connection.

    Args:
        conn_id: Id of the connection on which a batch application runs.
        settings: This machine's settings.

    Raises:
        SettingError: What the environment says of Spark is wrong.
        SparkSettingsError: What the extra says is wrong, or cannot be together with that.
    """
    try:
        connection = BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        return settings
    return with_installation(settings, spark_of_extra(conn_id, connection.extra_dejson))
