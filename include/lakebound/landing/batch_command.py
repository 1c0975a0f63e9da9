"""The spark-submit command of an application that works beside streams: one core, a small heap, behind everything else.

The heap is what ``spark.driver_memory`` says for the pipeline or the installation, and small where nothing does.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from lakebound.errors import LakeboundError
from lakebound.landing import background
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import app_name, driver_java_options, spark_conf
from lakebound.landing.spark_resources import spark_resources
from lakebound.settings import Settings
from lakebound.tables.places import Places

MASTER = "local[1]"
"""One core: the streams keep theirs."""


ANOTHER_RUN = 3
"""Exit code of a run that ended at once, because another one of the pipeline is under way."""


_CATALOG = "spark.sql.catalog.ice"

_RAW_FILES = ("spark.hadoop.fs.file.", "spark.hadoop.fs.AbstractFileSystem.file.")


_SQLITE = "sqlite:///"


class CatalogNotSharedError(LakeboundError):
    """Spark is not given the Iceberg catalog."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table}: Spark cannot maintain it, because it is not in the embedded catalog. Manifests and delete "
            f"files are not rewritten; data files are rewritten only if the table has no delete files. Snapshots still expire. "
            f"Use another engine for the rest"
        )


def is_shared(places: Places) -> bool:
    """Return whether Spark can open the Iceberg tables."""
    return places.iceberg_catalog_uri.startswith(_SQLITE)


def check_shared(table: str, places: Places) -> None:
    """Check that Spark can open the Iceberg tables.

    Raises:
        CatalogNotSharedError: It cannot.
    """
    if not is_shared(places):
        raise CatalogNotSharedError(table)


def batch_conf(orders: RunSpec, settings: Settings) -> dict[str, str]:
    """Return the Spark settings of a maintenance application: those of all applications, and the embedded Iceberg catalog."""
    jars = str(settings.jars / "spark" / "*")
    # Iceberg asks a file system for its scheme, and the raw one of an application that lands has none.
    common = {key: value for key, value in spark_conf(orders, settings).items() if not key.startswith(_RAW_FILES)}
    return {
        **common,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.extraJavaOptions": driver_java_options(settings, "-XX:+UseSerialGC", local=True),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        **_embedded_catalog(orders.places),
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }


def _embedded_catalog(places: Places) -> dict[str, str]:
    """Return the settings of the embedded catalog; of another one Spark is told nothing, and so no secret."""
    if not is_shared(places):
        return {}
    return {
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "jdbc",
        f"{_CATALOG}.uri": f"jdbc:sqlite:{places.iceberg_catalog_uri.removeprefix(_SQLITE)}",
        f"{_CATALOG}.jdbc.busy_timeout": "60000",
        f"{_CATALOG}.warehouse": f"file://{places.iceberg_warehouse}",
        f"{_CATALOG}.cache-enabled": "false",
    }


def run_spec_arguments(orders: RunSpec) -> list[str]:
    """Return the application's own arguments."""
    return ["--run-spec", orders.model_dump_json(by_alias=True)]


def driver_memory(orders: RunSpec, settings: Settings) -> str:
    """Return the heap of an application beside streams.

    The default holds one row group that is read and one that is written, of 128 MiB each, and the metadata of 20,000
    snapshots.
    """
    return spark_resources(settings, orders.spec.spark).driver_memory


def application_command(application: Path, orders: RunSpec, settings: Settings, conf: Mapping[str, str]) -> list[str]:
    """Return the command that starts an application on one core and a small heap.

    Args:
        application: Its entry point.
        orders: What it is told; they name the run.
        settings: This machine's settings.
        conf: Its Spark settings.
    """
    command = [str(Path(sys.executable).parent / "spark-submit"), "--master", MASTER, "--name", app_name(orders.app_id)]
    command += ["--driver-memory", driver_memory(orders, settings)]
    for key, value in sorted(conf.items()):
        command += ["--conf", f"{key}={value}"]
    return [*command, str(application), *run_spec_arguments(orders)]


class BatchOrders(RunSpec):
    """Orders of an application that works beside the streams and ends by itself.

    Attributes:
        is_waited_for: A person waits for the end: the run gets an ordinary share of the cores, and does not go behind
            everything else.
    """

    is_waited_for: bool = False


def in_its_place(command: list[str], orders: BatchOrders) -> list[str]:
    """Return the command behind everything else on the machine, unless a person waits for the end."""
    return command if orders.is_waited_for else behind_everything(command)


def behind_everything(command: list[str]) -> list[str]:
    """Return the command as the last in line for the machine's cores, in a session of its own."""
    return [sys.executable, "-I", "-S", background.__file__, *command]
