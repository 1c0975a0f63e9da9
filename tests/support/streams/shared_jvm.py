"""A JVM in which one application follows another, each with a Spark and a Python process of its own.

Half of what a start costs is a JVM that loads and compiles what every application needs. Where the process is not what is
tested, the application's Python (forked_python.py) finds a JVM that has done so: by the variables with which spark-submit tells
it of its own.
The JVM of an application that was killed is not used again.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway
from pyspark.serializers import read_int

from lakebound.landing.spark_command import is_local
from tests.support.forked_python import SERVER_IS_GONE, ForkedPython
from tests.support.waiting import wait_until

_OF_THE_JVM = ("spark.driver.extraClassPath", "spark.driver.extraJavaOptions", "spark.driver.memory")
_START_SECONDS = 30.0


@dataclass(frozen=True)
class Submission:
    """What a spark-submit command says."""

    conf: dict[str, str]
    python: list[str]
    """The application's file and its arguments."""

    @staticmethod
    def of(command: Sequence[str]) -> Submission:
        """Read a command of ``spark_submit_command``."""
        names = {"--master": "spark.master", "--name": "spark.app.name", "--driver-memory": "spark.driver.memory"}
        at = next(index for index, part in enumerate(command) if part.endswith(".py"))
        conf: dict[str, str] = {}
        for option, value in zip(command[1:at:2], command[2:at:2], strict=True):
            name, _, set_to = value.partition("=") if option == "--conf" else (names[option], "", value)
            conf[name] = set_to
        return Submission(conf, list(command[at:]))

    @property
    def of_the_jvm(self) -> tuple[str, ...]:
        """What a JVM is started with, and cannot be told later."""
        return tuple(self.conf.get(name, "") for name in _OF_THE_JVM)


@dataclass
class SharedJvm:
    """The JVM of this process's tests: started at the first use, ended with the tests."""

    _process: subprocess.Popen[bytes] | None = None
    _options: tuple[str, ...] = ()
    _address: dict[str, str] = field(default_factory=dict)
    _borrower: ForkedPython | None = None
    _folder: TemporaryDirectory[str] = field(default_factory=lambda: TemporaryDirectory(prefix="lakebound-jvm-"))

    @property
    def log(self) -> Path:
        """What Spark said, of all applications."""
        return Path(self._folder.name) / "log"

    def start(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> ForkedPython | None:
        """Start an application's Python, which uses the JVM; None while another one does, or where the JVM does not fit.

        Args:
            command: As for a process of its own.
            environment: All of the application's variables.
            log: The file to which what it says is added; Spark writes to the JVM's own log.
        """
        submission = Submission.of(command)
        if not self._is_free() or not is_local(submission.conf["spark.master"]):
            return None
        if self._process is None:
            self._start(submission, environment)
        if self._options != submission.of_the_jvm:
            return None
        self._prepare(submission.conf)
        variables = {
            **environment,
            **self._address,
            "PYSPARK_PIN_THREAD": "true",
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
        }
        self._borrower = ForkedPython(submission.python, variables, log)
        return self._borrower

    def end(self) -> None:
        """End the JVM, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_free(self) -> bool:
        if self._borrower is None:
            return True
        code = self._borrower.poll()
        if code is not None and (code < 0 or code == SERVER_IS_GONE):
            self.end()  # who is killed leaves its Spark at work
        return code is not None

    def _start(self, submission: Submission, environment: Mapping[str, str]) -> None:
        self._options = submission.of_the_jvm
        found = Path(self._folder.name) / "address"
        found.unlink(missing_ok=True)
        options = [
            part for name in _OF_THE_JVM if name in submission.conf for part in ("--conf", f"{name}={submission.conf[name]}")
        ]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).parent / "spark-submit"), *options, "pyspark-shell"],
                stdin=subprocess.PIPE,  # it ends when this process does
                stdout=log,
                stderr=log,
                env={**environment, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(found), "PYSPARK_PIN_THREAD": "true"},
                start_new_session=True,
            )
        wait_until(found.exists, _START_SECONDS, "Spark's JVM", poll_seconds=0.02)
        with found.open("rb") as file:
            port, secret = read_int(file), file.read(read_int(file)).decode()
        self._address = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}

    def _prepare(self, conf: Mapping[str, str]) -> None:
        port, secret = self._address.values()
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=secret))
        try:
            java: Any = gateway.jvm
            left = getattr(getattr(java.org.apache.spark, "SparkContext$"), "MODULE$").getActive()
            if left.isDefined():
                left.get().stop()
            for name in java.System.getProperties().stringPropertyNames():
                if name.startswith("spark."):
                    java.System.clearProperty(name)
            for name, value in conf.items():
                java.System.setProperty(name, value)
            # Hadoop keeps the file systems that it has made, and settings choose which: a JVM of its own has none yet.
            java.org.apache.hadoop.fs.FileSystem.closeAll()
        finally:
            gateway.close()


@cache
def shared_jvm() -> SharedJvm:
    """Return the one of this process."""
    made = SharedJvm()
    atexit.register(made.end)
    return made
