"""Both sides of the connection to the JVM send at once, in each thread."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakebound_spark.batch.local_relation import LocalRelations, arrow_of
from lakebound_spark.jvm_socket import send_at_once

pytestmark = pytest.mark.spark

NUMBERS = StructType().add("id", "long")


def sockets(session: SparkSession) -> tuple[bool, bool]:
    """Whether the JVM's side and Python's side of this thread's connection send without waiting."""
    context: Any = session.sparkContext
    client = context._gateway._gateway_client
    of_java = JavaObject("GATEWAY_SERVER", client).getCallbackClient().getPerThreadConnection().getSocket()
    of_python = client.get_thread_connection().socket
    return of_java.getTcpNoDelay(), bool(of_python.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))


def small_batch(session: SparkSession) -> tuple[list[int], tuple[bool, bool]]:
    rows = pa.table({"id": pa.array(range(3_000), pa.int64())})
    found = arrow_of(LocalRelations(NUMBERS)(session, rows).where("id % 2 = 0"))
    return found["id"].to_pylist(), sockets(session)


def test_the_thread_of_a_small_batch_waits_for_no_acknowledgement(session: SparkSession) -> None:
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
        assert first.submit(sockets, session).result() == (False, False), "py4j has begun to do so by itself"
        for thread in (first, second, first):
            assert thread.submit(small_batch, session).result() == ([*range(0, 3_000, 2)], (True, True))


def test_a_new_connection_of_the_same_thread_is_set_too(session: SparkSession) -> None:
    def lost() -> tuple[bool, bool]:
        context: Any = session.sparkContext
        send_at_once(session)
        context._gateway._gateway_client.get_thread_connection().close()
        send_at_once(session)
        return sockets(session)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(lost).result() == (True, True)


def test_without_a_connection_per_thread_nothing_is_changed() -> None:
    client = object()
    send_at_once(
        cast(SparkSession, SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(_gateway_client=client))))
    )
