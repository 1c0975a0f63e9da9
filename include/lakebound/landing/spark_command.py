"""The spark-submit command of one application, and its environment. Starts nothing, opens nothing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from lakebound.landing.class_archive import class_archive_option
from lakebound.landing.lineage_settings import lineage_environment
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_resources import spark_resources
from lakebound.settings import Settings, load_yaml_access
from lakebound.spec.spark_rules import SECRET_NAMES

APPLICATION = "ingest_stream.py"
LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""JVM options for an application that lives for seconds: it never earns back what the JVM's second compiler costs.

With one compiler the JVM reserves 48 MB for code instead of 240. A Spark that lives on fills them in minutes, and then
fails with "Out of space in CodeCache".
Source: https://docs.oracle.com/en/java/javase/17/docs/specs/man/java.html, ``ReservedCodeCacheSize``.
"""

METASPACE = "-XX:MetaspaceSize=256m"
"""At 21 MB of classes, and at each step from there, the JVM would stop for a full collection: twice for half a second (seen).

This reserves nothing; it only says from where on the JVM collects for the sake of classes.
Source: https://docs.oracle.com/en/java/javase/17/gctuning/other-considerations.html, "Class Metadata".
"""

NO_REDIRECTS = "-Dhttp.maxRedirects=0"
"""Java follows a token server that answers with another address, and takes the token from there (tried with kafka-clients
3.9.1, 301, 302, 303 and 307): a pipeline could let applications send requests to any server. librdkafka does not follow.

Source: https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/net/doc-files/net-properties.html
"""

LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of the JVM that only puts the application's command line together (``spark-class``): it lives for half a second."""

# What the system, Python, Java and Spark need. Anything else may be a secret, and a transform is a colleague's code.
_INHERITED = re.compile(
    r"LC_\w+|LD_\w+|MALLOC_\w+|OMP_NUM_THREADS|XDG_\w+|PYTHON(?!ASYNCIODEBUG)\w+|"
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|TERM|TZ|TMPDIR|PWD|HOSTNAME|VIRTUAL_ENV|JAVA_HOME|"
    r"SPARK_LOCAL_(DIRS|IP|HOSTNAME)|SPARK_PUBLIC_DNS|SPARK_(LAUNCHER|SUBMIT)_OPTS|SPARK_USER|HADOOP_(HOME|CONF_DIR|USER_NAME)|KRB5_CONFIG|"
    r"KRB5CCNAME|SSL_CERT_(FILE|DIR)|LAKEBOUND_(?!SECRET_)\w+"
)

AUTH_SECRET = "_SPARK_AUTH_SECRET"
"""Where Spark's processes find the secret of ``spark.authenticate``, so that no command line and no file has to hold it.

Source: ``getSecretKey`` in Spark's SecurityManager.scala. A driver of a standalone cluster wants it as a setting, too
(``initializeAuth`` there), which ``lakebound_spark.session`` sees to.
"""

_WITHOUT_CHECKSUMS = {
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
}
"""Half as many files in a checkpoint. Not with state: Spark copies the files of RocksDB by Hadoop's local file system with
checksums, and asks for it by its class (``FileSystem.getLocal``)."""

# What the pipeline or the installation may set otherwise (``spec.spark_rules.TUNABLE``).
_TUNED = {
    "spark.locality.wait": "0s",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.ui.retainedExecutions": "20",
    # What tasks make of a slice of a backlog is larger than 1 MB, which else goes by way of the block manager.
    "spark.task.maxDirectResultSize": "16m",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
}


def spark_submit_command(
    run_spec: RunSpec, settings: Settings, *, ui_port: int = 0, application: str = APPLICATION
) -> list[str]:
    """Return the command that starts the application.

    Args:
        run_spec: The application's orders; its JSON is the application's only argument.
        settings: This machine's places.
        ui_port: Port of the Spark UI; 0 lets the kernel choose.
        application: Name of the entry point in ``settings.apps``.
    """
    arguments = submit_arguments(run_spec, settings, ui_port=ui_port, application=application)
    return [str(Path(sys.executable).parent / "spark-submit"), *arguments]


def submit_arguments(run_spec: RunSpec, settings: Settings, *, ui_port: int = 0, application: str = APPLICATION) -> list[str]:
    """Return the arguments of SparkSubmit: options, application, and the application's own argument.

    Args:
        run_spec: Orders of the application; their JSON is its only argument.
        settings: This machine's settings; they name the Spark master and the folder of the entry points.
        ui_port: Port of the Spark UI; 0 lets the kernel choose one.
        application: File name of the entry point in ``settings.apps``.
    """
    driver_memory = spark_resources(settings, run_spec.spec.spark).driver_memory
    options = ["--master", settings.spark_master, "--name", app_name(run_spec.app_id), "--driver-memory", driver_memory]
    for key, value in sorted(spark_conf(run_spec, settings, ui_port=ui_port).items()):
        options += ["--conf", f"{key}={value}"]
    orders = run_spec.model_dump_json(by_alias=True)
    return [*options, str(settings.apps / application), "--run-spec", orders]


def app_name(app_id: str) -> str:
    """Return the application's name in Spark, by which its process can also be found on a machine."""
    return f"lakebound {app_id}"


def spark_conf(run_spec: RunSpec, settings: Settings, *, ui_port: int = 0) -> dict[str, str]:
    """Return the Spark settings of a landing application.

    The values were measured on two cores; what each is worth stands in the docs on freshness. Those of the pipeline and of the
    installation come between what may be tuned and what exactly-once depends on. Table formats need no
    settings here: Spark only makes rows and Parquet files, the driver's Python commits them.

    Args:
        run_spec: Orders of the application; they hold the limits of its pipeline, and what it gets of Spark.
        settings: This machine's settings; they name the Spark master.
        ui_port: Port of the Spark UI; 0 lets the kernel choose one.

    Raises:
        SettingError: What the installation says of Spark is wrong.
        SparkSettingsError: That and what the pipeline says cannot be together.
    """
    local = is_local(settings.spark_master)
    resources = spark_resources(settings, run_spec.spec.spark)
    stop_timeout_ms = int(run_spec.spec.limits.stop_timeout_seconds * 1000)
    return {
        **_TUNED,
        **resources.conf,
        **(_local_conf(settings) if local else _cluster_conf(settings)),
        **({} if local else resources.cluster_conf()),
        "spark.driver.extraJavaOptions": driver_java_options(settings, "-XX:+UseParallelGC", local=local),
        # A batch near this costs four times as much of the heap while it is handed over (seen: 230 MB end a JVM with 1 GB).
        "spark.driver.maxResultSize": "128m",
        "spark.executor.extraJavaOptions": f"-Duser.timezone=UTC {NO_REDIRECTS} -XX:+ExitOnOutOfMemoryError {METASPACE}",
        # A task that got no buffer for its rows fails, and the batch takes the other lane: no reason to end the JVM, which
        # on one machine is the driver's. A full heap does end it, by the option above.
        "spark.executor.killOnFatalError.depth": "0",
        **(_WITHOUT_CHECKSUMS if run_spec.spec.state is None else {}),
        "spark.redaction.regex": SECRET_NAMES,
        "spark.security.credentials.kafka.enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        # The rows of one Arrow batch lie in one buffer: a thousand wide ones are much already.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        # So do the records that executors hand to Python to decode them: of 20 MB each, few at once.
        "spark.sql.execution.arrow.maxBytesPerBatch": "16m",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.stopTimeout": str(stop_timeout_ms),
        # Else Spark computes what stands twice in a condition before what guards it:
        # id <> 0 AND 10 / id > 1 AND 10 / id < 6 raises on 0 (EquivalentExpressions).
        "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
        # Spark writes the plan of each batch as text, for its pages and its log of events: 0.2 instead of 0.6 ms.
        "spark.sql.ui.explainMode": "simple",
        "spark.ui.enabled": str(has_ui(settings)).lower(),
        "spark.ui.killEnabled": "false",
        "spark.ui.port": str(ui_port),
        "spark.ui.showConsoleProgress": "false",
    }


def driver_java_options(settings: Settings, collector: str, *, local: bool) -> str:
    """Return the options of an application's driver JVM; those of the settings come last, and win.

    Args:
        settings: This machine's places and further options.
        collector: The option that chooses the garbage collector.
        local: Whether the driver's class path is the one of this machine, which the class archive fits.
    """
    options = [
        "-Duser.timezone=UTC",
        NO_REDIRECTS,
        collector,
        "-XX:+ExitOnOutOfMemoryError",
        METASPACE,
        f"-Dlog4j2.configurationFile=file:{LOG_CONFIGURATION}",
        class_archive_option(settings.jars) if local else "",
        settings.jvm_options,
    ]
    return " ".join(filter(None, options))


def spark_environment(
    settings: Settings,
    environ: Mapping[str, str] | None = None,
    *,
    secrets: Iterable[str] = (),
    others: Iterable[str] = (),
) -> dict[str, str]:
    """Return the whole environment of the application.

    It inherits what the system needs, the variables that LAKEBOUND_VARIABLES names, and the pipeline's own secrets: no other
    pipeline's, and nothing of Airflow's.

    Args:
        settings: This machine's places.
        environ: What is inherited; default: this process's environment.
        secrets: Variables that hold the pipeline's secrets (``RunSpec.secret_variables``).
        others: Further variables that it inherits (``WarehouseSpec.own_variables``).
    """
    inherited = os.environ if environ is None else environ
    access = load_yaml_access(inherited)
    named = {*access.variables, *others, *(name for name in secrets if access.may_be_secret(name))}
    environment = {name: value for name, value in inherited.items() if name in named or _INHERITED.fullmatch(name)}
    environment.update(settings.environment())
    environment.update(
        PYSPARK_PYTHON=sys.executable,
        PYSPARK_DRIVER_PYTHON=sys.executable,
        PYTHONUNBUFFERED="1",
        TZ="UTC",
    )
    environment.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_OPTIONS)
    if is_local(settings.spark_master):
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    elif AUTH_SECRET in inherited:
        environment[AUTH_SECRET] = inherited[AUTH_SECRET]
    return environment


def run_environment(orders: RunSpec, settings: Settings) -> dict[str, str]:
    """Return the whole environment of an application with these orders: with the secrets of its pipeline and its warehouse.

    Args:
        orders: What it is told.
        settings: This machine's places.
    """
    return spark_environment(settings, secrets=orders.secret_variables, others=orders.own_variables)


def stream_environment(orders: RunSpec, settings: Settings) -> dict[str, str]:
    """Return the whole environment of the application that lands: it also gets OpenLineage's settings, its key included.

    Args:
        orders: What it is told.
        settings: This machine's places.
    """
    return {**run_environment(orders, settings), **lineage_environment()}


def has_ui(settings: Settings) -> bool:
    """Whether applications have Spark's web UI, which asks nobody for a password.

    It listens on the address in SPARK_LOCAL_IP, and on every address where there is none (``WebUI.bind``). On one machine
    that is the loopback. In a cluster the executors must reach the driver, so there it is off unless somebody put it behind
    a proxy.
    """
    return settings.spark_ui == "on" or (settings.spark_ui != "off" and is_local(settings.spark_master))


def is_local(master: str) -> bool:
    """Whether driver and executors are one process on this machine."""
    return master.startswith("local")


def _local_conf(settings: Settings) -> dict[str, str]:
    # A class path starts faster than spark.jars, which copies every jar into a folder of the application's own.
    jars = str(settings.jars / "spark" / "*")
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": jars,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.extraClassPath": jars,
    }


def _cluster_conf(settings: Settings) -> dict[str, str]:
    jars = sorted(str(jar) for jar in (settings.jars / "spark").glob("*.jar"))
    return {"spark.jars": ",".join(jars)} if jars else {}
