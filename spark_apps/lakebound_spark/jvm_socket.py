"""The socket between a thread and Spark's JVM: what is sent does not wait for an acknowledgement.

py4j's server writes an answer in pieces of 8 KiB. Nagle's algorithm (RFC 896) holds a small piece back until the one before is
acknowledged, and Linux acknowledges after 40 ms, because there might be data to send along (RFC 1122, 4.2.3.2). So each answer
of more than 8 KiB, such as the schema of a wide table, took 40 ms longer than its computing.
"""

from __future__ import annotations

import logging
import socket
import threading
import weakref
from typing import Any

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
_sockets = threading.local()


def send_at_once(session: SparkSession) -> None:
    """Switch Nagle's algorithm off, on both sides of this thread's connection to the JVM; once for each connection.

    Where py4j has no connection per thread (``PYSPARK_PIN_THREAD=false``), nothing is changed.
    """
    context: Any = session.sparkContext
    client = context._gateway._gateway_client
    if not hasattr(client, "get_thread_connection"):
        return
    connection, known = client.get_thread_connection(), getattr(_sockets, "connection", None)
    if connection is not None and connection.socket is not None and known is not None and known() is connection:
        return
    try:
        of_java = JavaObject("GATEWAY_SERVER", client).getCallbackClient().getPerThreadConnection()
        of_java.getSocket().setTcpNoDelay(True)
        connection = client.get_thread_connection()
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (Py4JError, AttributeError, OSError) as exc:
        # Such as a thread that was connected before Spark's callback server started, which forgets those connections.
        log.debug("answers of more than 8 KiB from the JVM take 40 ms longer: %s", exc)
    if connection is not None:
        _sockets.connection = weakref.ref(connection)
