"""The JVM beside this Python: signals sent to it are passed on, and its death is noticed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from lakebound.errors import LakeboundError

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_DYING_SECONDS = 2.0
"""A JVM that dies closes its connections a moment before it is gone."""

Ask = Callable[[signal.Signals], None]


class SparkDiedError(LakeboundError):
    """The JVM that runs Spark is gone, and the Python process beside it is left alone."""

    def __init__(self, pipeline: str) -> None:
        super().__init__(
            f"pipeline {pipeline!r}: Spark's JVM died. It was killed, or it was out of memory (see the end of the log); "
            f"the next start continues from the ledger"
        )


_ASKED_FOR = (
    "functions",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.functions",
    "py4j",
    "PythonSQLUtils",
    "PythonUtils",
)
"""What PySpark looks up for each column, each call of a function and each frame."""


def remember_classes(session: SparkSession) -> None:
    """Have Python keep the classes for which PySpark asks the JVM again and again.

    The JVM looks for a short name in ten packages, each time in 350 jars. To call a function of four columns took 24 ms, and
    takes 21 with this (measured).
    """
    jvm = session.sparkContext._jvm
    for name in _ASKED_FOR:
        setattr(jvm, name, getattr(jvm, name))


class _SignalHandler:
    """Java's interface of the same name, implemented here; Java calls it in a thread of its own."""

    def __init__(self, number: signal.Signals, ask: Ask) -> None:
        self._number = number
        self._ask = ask

    def handle(self, _: Any) -> None:
        """Pass the signal on."""
        self._ask(self._number)

    class Java:
        """For Py4J."""

        implements = ("sun.misc.SignalHandler",)


def obey_signals(ask: Ask) -> None:
    """Call ``ask`` at SIGTERM and SIGINT, whichever of the two processes receives it.

    Without this, the JVM ends Spark at once under the batch in flight. Whoever stops a container or a process group
    signals the JVM, alone or together with this Python. Call it again after the session was made, which takes SIGINT
    for itself.
    """
    SparkContext._ensure_initialized()
    gateway: Any = SparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    java: Any = gateway.jvm.sun.misc
    for number in _SIGNALS:
        java.Signal.handle(java.Signal(number.name.removeprefix("SIG")), _SignalHandler(number, ask))
        signal.signal(number, lambda received, _: ask(signal.Signals(received)))


class ParentWatch:
    """Tells whether the JVM that started this Python is gone; where it is not spark-submit that started it, it never is."""

    def __init__(self) -> None:
        self._pid = os.getppid() if "PYSPARK_GATEWAY_PORT" in os.environ else None

    def is_dead(self) -> bool:
        """Whether it is gone: its orphans get another parent."""
        return self._pid is not None and os.getppid() != self._pid

    def has_caused(self, error: BaseException) -> bool:
        """Whether the error comes from the JVM's death."""
        deadline = time.monotonic() + _DYING_SECONDS
        while isinstance(error, Py4JNetworkError | ConnectionError) and not self.is_dead() and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.is_dead()
