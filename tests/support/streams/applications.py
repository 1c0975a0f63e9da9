"""Starts, watches, kills and stops the real streaming application for tests."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from lakebound.control.desired import change_desired, request_stop
from lakebound.control.lease import read_lease
from lakebound.control.process_identity import is_running
from lakebound.control.processes import last_lines
from lakebound.control.progress import Outcome, Progress, read_outcome, read_progress
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import spark_environment, spark_submit_command
from tests.support.streams.pipelines import REPOSITORY, Pipeline
from tests.support.streams.shared_jvm import shared_jvm
from tests.support.waiting import HANGS_SECONDS, STRETCH, wait_until

STARTS = ("spark_apps/ingest_stream.py",)
"""What its processes run; see tests/support/reached_tests.py."""
START_SECONDS = 150.0
LANDING_SECONDS = 150.0
END_SECONDS = 90.0
Ends = Mapping[str, Mapping[int, int]]


class RunningApplication:
    """One application in a process group of its own."""

    def __init__(
        self,
        pipeline: Pipeline,
        faults: str = "",
        environ: Mapping[str, str] | None = None,
        conf: Mapping[str, str] | None = None,
        own_jvm: bool = True,
    ) -> None:
        """Start it; nothing is waited for.

        Args:
            pipeline: What it runs.
            faults: Rules of ``lakebound.faults``.
            environ: Variables to add, such as a password.
            conf: Spark settings that replace the application's own.
            own_jvm: Whether spark-submit starts it, as in production; else it may run in the JVM that tests share.
        """
        self.pipeline = pipeline
        self.own_jvm = own_jvm
        self.run_spec: RunSpec = pipeline.run_spec()
        self.app_id = self.run_spec.app_id
        self.command = with_conf(spark_submit_command(self.run_spec, pipeline.settings), conf or {})
        self.log: Path = pipeline.control.log(self.app_id)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {
            **spark_environment(pipeline.settings, secrets=self.run_spec.secret_variables),
            "PYTHONPATH": os.pathsep.join(str(REPOSITORY / part) for part in ("", "include", "spark_apps")),
            **(environ or {}),
        }
        if faults:
            environment["LAKEBOUND_FAULTS"] = faults
        self.started_at = time.monotonic()
        shared = None if own_jvm else shared_jvm().start(self.command, environment, self.log)
        with self.log.open("ab") as log:
            self.process = shared or subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )

    def __str__(self) -> str:
        of_spark = "" if self.own_jvm else f"\n--- the shared JVM's log:\n{last_lines(shared_jvm().log)}"
        return f"application {self.app_id} (log {self.log}):\n{self.log_tail()}{of_spark}"

    @property
    def progress(self) -> Progress | None:
        """What it last said of itself; None before its first word."""
        progress = read_progress(self.pipeline.control)
        return progress if progress is not None and progress.app_id == self.app_id else None

    @property
    def outcome(self) -> Outcome | None:
        """How it ended."""
        return read_outcome(self.pipeline.control, self.app_id)

    def log_tail(self, lines: int = 60) -> str:
        """Return the end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_for(self, condition: Callable[[], bool], deadline_seconds: float, what: str) -> None:
        """Return when the condition holds; fail when it does not in time, or when the application ends before."""
        deadline_seconds *= STRETCH
        deadline = time.monotonic() + deadline_seconds
        while not condition():
            assert self.process.poll() is None, f"it ended ({self.process.returncode}) before {what}: {self}"
            assert time.monotonic() < deadline, f"waited {deadline_seconds:g} s for {what}, in vain: {self}"
            time.sleep(0.05)

    def wait_running(self) -> None:
        """Return when its stream runs."""
        self.wait_for(lambda: self._state() == "running", START_SECONDS, "state running")

    def wait_landed(self, ends: Ends, deadline_seconds: float = LANDING_SECONDS) -> None:
        """Return when it says that everything before these offsets is dealt with in every table."""
        self.wait_for(lambda: self._has_landed(ends), deadline_seconds, f"landing up to {dict(ends)}")

    def wait_exit(self, deadline_seconds: float = START_SECONDS + LANDING_SECONDS) -> int:
        """Return its exit code when it has ended; negative when a signal ended it."""
        try:
            return self.process.wait(STRETCH * deadline_seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it did not end within {STRETCH * deadline_seconds:g} s: {self}") from None

    def wait_killed(self, point: str) -> None:
        """Return when an injected fault has killed it at the point."""
        code = self.wait_exit()
        assert code == -signal.SIGKILL, f"ended with {code}, not by SIGKILL {point}: {self}"

    def wait_suspended(self) -> None:
        """Return when an injected fault has suspended it."""

        def is_suspended() -> bool:
            return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED

        self.wait_for(is_suspended, START_SECONDS + LANDING_SECONDS, "SIGSTOP")

    def resume(self) -> None:
        """Let a suspended one go on."""
        os.killpg(self.process.pid, signal.SIGCONT)

    def terminate(self) -> None:
        """Send SIGTERM to the driver: the process that holds the lease."""
        lease = read_lease(self.pipeline.control)
        assert lease is not None and lease.app_id == self.app_id
        os.kill(lease.pid, signal.SIGTERM)

    def terminate_jvm(self) -> None:
        """Send SIGTERM to the JVM alone, as an init process in a container does: the shell scripts became the JVM."""
        assert self.own_jvm
        os.kill(self.process.pid, signal.SIGTERM)

    def terminate_group(self) -> None:
        """Send SIGTERM to all of its processes at once."""
        assert self.own_jvm
        os.killpg(self.process.pid, signal.SIGTERM)

    def stop(self) -> Outcome:
        """Ask it to end gracefully by a stop marker and return its outcome."""
        request_stop(self.pipeline.control, self.app_id, reason="the test is over", by="test")
        return self.ended()

    def ended(self, deadline_seconds: float = END_SECONDS) -> Outcome:
        """Wait for its end and return its outcome."""
        self.wait_exit(deadline_seconds)
        outcome = self.outcome
        assert outcome is not None, f"ended without an outcome: {self}"
        return outcome

    def wait_outcome(self, deadline_seconds: float = 30.0) -> Outcome:
        """Return its last word, which its Python may say after its JVM is gone."""
        deadline = time.monotonic() + deadline_seconds
        while (outcome := self.outcome) is None:
            assert time.monotonic() < deadline, f"no outcome within {deadline_seconds:g} s: {self}"
            time.sleep(0.05)
        return outcome

    def kill(self) -> None:
        """End the whole process group at once, and return when nothing of it runs any more."""
        assert self.own_jvm
        self.end()

    def end(self) -> None:
        """Kill what still runs of it; a JVM that it shares is not used again."""
        family: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(self.process.pid).children(recursive=True)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(HANGS_SECONDS)
        # Its Python is not this process's child, and on a busy machine the last to go.
        wait_until(lambda: not any(map(is_running, family)), 30, "the end of what was killed")

    def _state(self) -> str | None:
        progress = self.progress
        return progress.state if progress else None

    def _has_landed(self, ends: Ends) -> bool:
        progress = self.progress
        if progress is None:
            return False
        marks = progress.high_water_marks
        return all(marks.get(topic, {}).get(p, 0) >= end for topic, partitions in ends.items() for p, end in partitions.items())


class Applications:
    """Starts applications and ends what is left of them."""

    def __init__(self) -> None:
        self._started: list[RunningApplication] = []

    def start(
        self,
        pipeline: Pipeline,
        faults: str = "",
        environ: Mapping[str, str] | None = None,
        conf: Mapping[str, str] | None = None,
        own_jvm: bool = False,
    ) -> RunningApplication:
        """Start one; see RunningApplication. One with faults, variables or settings has a JVM of its own anyway."""
        special = own_jvm or bool(faults or environ or conf)
        application = RunningApplication(pipeline, faults, environ, conf, own_jvm=special)
        self._started.append(application)
        return application

    def end(self) -> None:
        """Kill whatever still runs."""
        for application in self._started:
            application.end()


def go_on(pipeline: Pipeline) -> None:
    """Say as a person would that it may be started again, however often it was killed before it landed anything."""
    change_desired(pipeline.control, "running", reason="killed on purpose", by="test")


@contextmanager
def applications() -> Iterator[Applications]:
    """Yield a starter of applications; none of them outlives the block."""
    starter = Applications()
    try:
        yield starter
    finally:
        starter.end()


def with_conf(command: list[str], conf: Mapping[str, str]) -> list[str]:
    """Return the command with Spark settings added after its own, so that they win."""
    extra = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    at = next(index for index, part in enumerate(command) if part.endswith(".py"))
    return [*command[:at], *extra, *command[at:]]
