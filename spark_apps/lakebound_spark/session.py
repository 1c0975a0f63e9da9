"""The Spark session of an application; its settings come from spark-submit (``lakebound.submit``)."""

from __future__ import annotations

from pyspark.sql import SparkSession


def make_session(name: str) -> SparkSession:
    """Return the session, started if need be."""
    session: SparkSession = SparkSession.builder.appName(name).getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session
