"""What a maintenance application is told, and the spark-submit command that starts it: small, and behind everything else."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lakebound import background
from lakebound.desired import Desired
from lakebound.errors import LakeboundError
from lakebound.run_spec import RunSpec, make_run_spec
from lakebound.settings import Settings
from lakebound.spec import PipelineSpec
from lakebound.submit import app_name, driver_java_options, spark_conf

APPLICATION = "maintain.py"
MASTER = "local[1]"
"""One core: the streams keep theirs."""

DRIVER_MEMORY = "1g"
"""Holds one row group that is read and one that is written, of 128 MiB each, and the metadata of 20,000 snapshots."""

PROGRESS = "maintain: "
"""Starts a line of the log that a person who waits wants to see."""

ANOTHER_RUN = 3
"""Exit code of a run that ended at once, because another one of the pipeline is under way."""

_CATALOG = "spark.sql.catalog.ice"
_SQLITE = "sqlite:///"


class CatalogNotSharedError(LakeboundError):
    """Spark cannot be told of the Iceberg catalog."""

    def __init__(self, uri: str) -> None:
        super().__init__(
            f"the Iceberg catalog {uri.partition('@')[0]} is not a SQLite file, so Spark cannot open it; "
            f"Iceberg's files cannot be rewritten with it"
        )


class MaintenanceOrders(RunSpec):
    """One maintenance run's orders: those of an application, whose id names the run.

    Attributes:
        plan_only: Say what would be done, and end.
    """

    plan_only: bool = False


def maintenance_orders(spec: PipelineSpec, settings: Settings, app_id: str, *, plan_only: bool = False) -> MaintenanceOrders:
    """Return the orders of a maintenance run that is about to be submitted."""
    run = make_run_spec(spec, settings, Desired(), app_id)
    return MaintenanceOrders(**{name: getattr(run, name) for name in RunSpec.model_fields}, plan_only=plan_only)


def maintenance_conf(orders: MaintenanceOrders, settings: Settings) -> dict[str, str]:
    """Return the Spark settings of a maintenance application: those of all applications, and the Iceberg catalog.

    Raises:
        CatalogNotSharedError: The catalog is not one that Spark can open.
    """
    places = orders.places
    if not places.iceberg_catalog_uri.startswith(_SQLITE):
        raise CatalogNotSharedError(places.iceberg_catalog_uri)
    jars = str(settings.jars / "spark" / "*")
    # Iceberg asks a file system for its scheme, and the raw one of an application that lands has none.
    common = {key: value for key, value in spark_conf(orders, settings).items() if not key.startswith("spark.hadoop.fs.")}
    return {
        **common,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.extraJavaOptions": driver_java_options(settings, "-XX:+UseSerialGC", local=True),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "jdbc",
        f"{_CATALOG}.uri": f"jdbc:sqlite:{places.iceberg_catalog_uri.removeprefix(_SQLITE)}",
        f"{_CATALOG}.jdbc.busy_timeout": "60000",
        f"{_CATALOG}.warehouse": f"file://{places.iceberg_warehouse}",
        f"{_CATALOG}.cache-enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }


def maintenance_arguments(orders: MaintenanceOrders) -> list[str]:
    """Return the application's own arguments."""
    return ["--run-spec", orders.model_dump_json(by_alias=True)]


def maintenance_command(orders: MaintenanceOrders, settings: Settings) -> list[str]:
    """Return the command that starts the application, behind everything else."""
    conf = maintenance_conf(orders, settings)
    command = application_command(settings.apps / APPLICATION, orders, conf, maintenance_arguments(orders))
    return behind_everything(command)


def application_command(application: Path, orders: RunSpec, conf: Mapping[str, str], arguments: Sequence[str]) -> list[str]:
    """Return the command that starts an application on one core and a small heap.

    Args:
        application: Its entry point.
        orders: What it is told; they name the run.
        conf: Its Spark settings.
        arguments: Its own arguments.
    """
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", MASTER, "--name", app_name(orders.app_id)]
    command += ["--driver-memory", DRIVER_MEMORY]
    for key, value in sorted(conf.items()):
        command += ["--conf", f"{key}={value}"]
    return [*command, str(application), *arguments]


def behind_everything(command: list[str]) -> list[str]:
    """Return the command as the last in line for the machine's cores, in a session of its own."""
    return [sys.executable, "-I", "-S", background.__file__, *command]
