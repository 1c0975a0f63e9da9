"""A small Spark that a command starts for a few questions: it gets orders as lines of JSON, and answers in the same way."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Any

from lakebound.errors import LakeboundError
from lakebound.landing.spark_command import driver_java_options, spark_environment
from lakebound.settings import Settings

MASTER = "local[1]"


class SparkAnswers:
    """The answers of an application, one line of JSON for each pipeline."""

    def __init__(self, process: subprocess.Popen[str], noise: IO[str], failure: Callable[[str, str], LakeboundError]) -> None:
        self._process = process
        self._noise = noise
        self._failure = failure

    def of(self, pipeline: str) -> dict[str, Any]:
        """Return the next answer for a pipeline; other lines are skipped.

        Raises:
            LakeboundError: The application ended without an answer; ``failure`` made the error from its last message.
        """
        assert self._process.stdout is not None
        for line in self._process.stdout:
            body = _answer(line, pipeline)
            if body is not None:
                return body
        raise self._failure(pipeline, f"exit code {self._process.wait()}: {_last_message(self._noise)}")


@contextmanager
def small_spark(
    settings: Settings,
    application: str,
    orders: Sequence[str],
    *,
    limit_seconds: float,
    failure: Callable[[str, str], LakeboundError],
    secrets: Iterable[str] = (),
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkAnswers]:
    """Start an application with a Spark of its own, give it its orders, and end it after the block or the time limit.

    Args:
        settings: This machine's settings.
        application: Name of the entry point in ``settings.apps``.
        orders: Lines of JSON.
        limit_seconds: How long it may take in all, its start included.
        failure: Makes the error for a pipeline without an answer from its name and a reason.
        secrets: Variables with secrets that it needs.
        conf: Further settings of its Spark.

    Yields:
        The answers.
    """
    with TemporaryFile("w+", errors="replace") as noise:
        process = start_spark(settings, noise, application, secrets, conf)
        limit = Timer(limit_seconds, process.kill)
        limit.start()
        try:
            _tell(process, orders)
            yield SparkAnswers(process, noise, failure)
        finally:
            limit.cancel()
            process.kill()
            process.wait()


def start_spark(
    settings: Settings,
    noise: IO[str],
    application: str,
    secrets: Iterable[str] = (),
    conf: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Start the process.

    Args:
        settings: This machine's settings.
        noise: File that gets its standard error.
        application: Name of the entry point in ``settings.apps``.
        secrets: Variables with secrets that it needs.
        conf: Further settings of its Spark.
    """
    java = driver_java_options(settings, "-XX:+UseSerialGC -XX:TieredStopAtLevel=1", local=True)
    own = {
        "spark.driver.extraClassPath": f"{settings.jars}/spark/*",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
    }
    submit = ["--master", MASTER, "--driver-java-options", java]
    for name, value in ({**(conf or {}), **own}).items():
        submit += ["--conf", f"{name}={value}"]
    # Its Spark is this machine's alone, whatever the master of streams is.
    environment = spark_environment(replace(settings, spark_master=MASTER), secrets=secrets)
    return subprocess.Popen(
        [sys.executable, str(settings.apps / application)],
        env={**environment, "PYSPARK_SUBMIT_ARGS": shlex.join([*submit, "pyspark-shell"])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=noise,
        text=True,
        errors="replace",
    )


def _tell(process: subprocess.Popen[str], orders: Sequence[str]) -> None:
    # An application that has ended takes no orders: then no answer comes, and its last message says why.
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write("".join(f"{line}\n" for line in orders))
        process.stdin.flush()
    with suppress(BrokenPipeError):
        process.stdin.close()


def _answer(line: str, pipeline: str) -> dict[str, Any] | None:
    try:
        body = json.loads(line)
    except ValueError:
        return None
    return body if isinstance(body, dict) and body.get("pipeline") == pipeline else None


def _last_message(noise: IO[str]) -> str:
    noise.seek(0)
    return next(
        (line.strip() for line in reversed(noise.read().splitlines()) if line.strip()), "the process printed no message"
    )
