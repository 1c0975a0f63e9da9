"""The Spark session of an application; its settings come from spark-submit (``lakebound.landing.spark_command``)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession


def make_session(name: str, log_level: str = "WARN") -> SparkSession:
    """Return the session, started if need be; Spark logs from that level on."""
    session: SparkSession = SparkSession.builder.appName(name).getOrCreate()
    session.sparkContext.setLogLevel(log_level)
    return session


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
