"""Spark's log while something is evaluated that is known to raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

_TELLING = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.execution.datasources.v2",
)
"""Loggers of Spark that quote a record each time that a part raises, or say that nothing was written."""


@contextmanager
def without_quotes(session: SparkSession) -> Iterator[None]:
    """Keep Spark from quoting records in its log, as it does some twenty times where a function raises on them."""
    jvm: Any = session._jvm
    log4j = jvm.org.apache.logging.log4j
    held = log4j.LogManager.getContext(False)
    own = held.getConfiguration().getLoggers()
    levels = {name: own.get(name).getLevel() if own.containsKey(name) else None for name in _TELLING}
    # By PySpark's way: a logger of the plain class under this name would make each error of SQL a TypeError from then on.
    context = PySparkLogger.getLogger("DataFrameQueryContextLogger")
    was_disabled, context.disabled = context.disabled, True
    for name in levels:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)
    try:
        yield
    finally:
        context.disabled = was_disabled
        for name, level in levels.items():
            if level is None:
                held.getConfiguration().removeLogger(name)
                held.updateLoggers()
            else:
                log4j.core.config.Configurator.setLevel(name, level)
