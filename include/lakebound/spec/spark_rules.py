"""Which settings of Spark nobody may give, not even whoever installs Lakebound, and why. Pure.

What an application is, what its rows say, how files and commits are written: exactly-once rests on it. Which of the other
settings the author of a pipeline may give is in ``author_rules``.
"""

from __future__ import annotations

import re

SECRET_NAMES = r"(?i)secret|password|passwd|token|jaas|sasl|access[.]?key|keystore"
"""Spark never prints values of settings whose names match. It still has them on command lines and hands them to executors."""

TUNABLE = frozenset(
    {
        "spark.locality.wait",
        "spark.sql.shuffle.partitions",
        "spark.sql.ui.retainedExecutions",
        "spark.task.maxDirectResultSize",
        "spark.ui.retainedJobs",
        "spark.ui.retainedStages",
        "spark.ui.retainedTasks",
    }
)
"""Settings to which Lakebound gives a value of its own, and which may have another one."""

_SQL_TUNING = (
    "spark.sql.autoBroadcastJoinThreshold",
    "spark.sql.broadcastTimeout",
    "spark.sql.debug.maxToStringFields",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.maxPlanStringLength",
    "spark.sql.shuffle.partitions",
    "spark.sql.streaming.metricsEnabled",
    "spark.sql.ui.retainedExecutions",
)

_FIELDS = {
    "spark.cores.max": "max_cores",
    "spark.driver.cores": "driver_cores",
    "spark.driver.memory": "driver_memory",
    "spark.executor.cores": "executor_cores",
    "spark.executor.memory": "executor_memory",
}

_RULES: tuple[tuple[str, str], ...] = (
    (
        r"spark\.(master|home|submit\..+|driver\.supervise|remote|api\.mode)",
        "cannot be set here: the Airflow connection, or LAKEBOUND_SPARK_MASTER, says where applications run",
    ),
    (r"spark\.app\.(name|id)", "cannot be set here: Lakebound finds an application by the name that it gives it"),
    (
        r"spark\.(driver|executor)\.(extra|default)JavaOptions",
        "cannot be set here: LAKEBOUND_JVM_OPTIONS holds further options of the driver's JVM",
    ),
    (
        r"spark\.(jars|plugins|pyspark|kryo|repl)(\..+)?|spark\.(files|archives|extraListeners|(closure\.)?serializer)"
        r"|spark\.(driver|executor)\.(extraClassPath|extraLibraryPath|userClassPathFirst)|spark\.shuffle\.manager",
        "cannot be set here: it loads code, and the code of an application is what is installed and checked",
    ),
    (
        r"spark\.sql\..+|spark\.catalog\..+",
        "cannot be set here: it may change the values in rows or how a stream starts, which must be the same in all lanes; the "
        f"SQL settings that may be given are {', '.join(_SQL_TUNING)}",
    ),
    (
        r"spark\.hadoop\.(mapred|mapreduce|parquet|fs\.file|fs\.AbstractFileSystem\.file|fs\.defaultFS)(\..+)?"
        r"|spark\.(hadoop\.fs\.s3a\.committer|streaming|checkpoint|cleaner\.referenceTracking\.cleanCheckpoints)(\..+)?",
        "cannot be set here: it changes how files or progress are written, which exactly-once depends on",
    ),
    (
        r"spark\.ui\.(enabled|port|killEnabled|showConsoleProgress)",
        "cannot be set here: LAKEBOUND_SPARK_UI says whether applications have the web UI",
    ),
    (
        r"spark\.driver\.maxResultSize|spark\.executor\.killOnFatalError\.depth",
        "cannot be set here: Lakebound uses it to send a batch that is too large for the driver to the executors",
    ),
    (r"spark\.redaction\..+|spark\.security\..+", "cannot be set here: it keeps secrets out of what Spark shows"),
)
# Their values are names and paths that Kubernetes gives to secrets, and no secrets.
_NAME_OF_A_SECRET = re.compile(
    r"spark\.kubernetes\.(container\.image\.pullSecrets|(driver|executor)\.(secrets|secretKeyRef)\..+|authenticate\..+File)"
)
_COMPILED = tuple((re.compile(pattern), reason) for pattern, reason in _RULES)
_SECRET = re.compile(SECRET_NAMES)
_LOGIN_IN_ADDRESS = re.compile(r"://[^/@\s:]*:[^/@\s]+@")
_NOT_SHOWN = (
    "Spark shows its settings on command lines and in its event log. A login of Kafka is written under connection.sasl; any "
    "other secret is given to the machines that run Spark (docs/how-to/backends.md, Secrets)"
)


def names_a_secret(name: str) -> bool:
    """Return whether the value of a setting of that name may be a secret."""
    return _SECRET.search(name) is not None


def refused_name(name: str) -> str | None:
    """Return why nobody may give a setting, and what to do; None where whoever installs Lakebound may.

    Args:
        name: Of the setting, such as ``spark.eventLog.dir``.
    """
    if not name.startswith("spark."):
        return "is not a setting of Spark: their names begin with spark. (Hadoop's with spark.hadoop.)"
    if names_a_secret(name) and not _NAME_OF_A_SECRET.fullmatch(name):
        return f"may hold a secret, which must never be written here: {_NOT_SHOWN}"
    if name in _FIELDS:
        return f"is written as {_FIELDS[name]}, beside the other settings of Spark"
    if name in TUNABLE or name in _SQL_TUNING:
        return None
    return next((reason for pattern, reason in _COMPILED if pattern.fullmatch(name)), None)


def refused_value(value: str) -> str | None:
    """Return why a setting may not have a value, without repeating it; None where it may."""
    if _LOGIN_IN_ADDRESS.search(value):
        return f"has a login in an address, which must never be written here: {_NOT_SHOWN}"
    return None
