"""The Spark session of an application; its settings come from spark-submit (``lakebound.landing.spark_command``)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from lakebound.landing.spark_command import AUTH_SECRET
from lakebound.landing.spark_resources import HADOOP
from lakebound_spark.jvm import remember_classes

_GATEWAY = "PYSPARK_GATEWAY_PORT"
"""Is set where spark-submit started Python, and not Python Spark."""


def make_session(name: str, log_level: str = "WARN") -> SparkSession:
    """Return the session, started if need be; Spark logs from that level on."""
    if _GATEWAY in os.environ and AUTH_SECRET in os.environ:
        # A driver takes the secret from its settings alone, though its executors take it from the variable. It goes to the JVM
        # that spark-submit has started by Python's own connection; a JVM that Python starts has settings on its command line.
        SparkContext.getOrCreate(SparkConf().setAppName(name).set("spark.authenticate.secret", os.environ[AUTH_SECRET]))
    session: SparkSession = SparkSession.builder.appName(name).getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    remember_classes(session)
    _without_java_calls(session)
    return session


_OF_CONDITIONS = {"spark.sql.runSQLOnFiles": "false", "spark.sql.variable.substitute": "false"}


def guard_conditions(session: SparkSession) -> None:
    """Let SQL read nothing of the machine from now on, before conditions are read that somebody wrote in YAML.

    It could name files (``text.`/etc/hostname```), and Spark would put variables in the place of ``${env:NAME}``.
    """
    for name, value in _OF_CONDITIONS.items():
        session.conf.set(name, value)


@contextmanager
def guarded_conditions(session: SparkSession) -> Iterator[None]:
    """Do the same for as long as the block lasts: a transform may name files."""
    before = {name: str(session.conf.get(name)) for name in _OF_CONDITIONS}
    guard_conditions(session)
    try:
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@contextmanager
def hadoop_settings(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Give a session the settings of Hadoop among those of a pipeline for as long as the block lasts: it plans several."""
    own = {name.removeprefix(HADOOP): value for name, value in conf.items() if name.startswith(HADOOP)}
    for name, value in own.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in own:
            session.conf.unset(name)


def _without_java_calls(session: SparkSession) -> None:
    """Take the functions away by which SQL calls any method of Java's: a condition in YAML could read the machine by them."""
    registry, jvm = session._jsparkSession.sessionState().functionRegistry(), session.sparkContext._jvm
    assert jvm is not None
    for name in ("reflect", "java_method", "try_reflect"):
        registry.dropFunction(jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(name))


class SessionStart:
    """A session that a thread starts, so that the JVM and Python are busy at the same time."""

    def __init__(self, name: str) -> None:
        starter = ThreadPoolExecutor(1, "session")
        self._session = starter.submit(make_session, name)
        starter.shutdown(wait=False)

    def wait(self) -> SparkSession:
        """Return the session when it has started, as the active one of this thread, too; raise what its start raised."""
        session = self._session.result()
        # Spark keeps the active session by thread, and reads its settings from it.
        SparkSession._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
        return session
