"""The watch: rounds of alerts, and the doctor's looks beside them, until it is asked to end.

A round is what the DAG ``alerts`` does, and the looks are what ``checkpoint_health`` does. Both use the same files, under the
same locks, so where Airflow runs them, too, nothing is told twice.
"""

from __future__ import annotations

import threading
import time

import structlog

from lakebound.alerts.doctor_processes import (
    LOOK_EVERY_SECONDS,
    LOOK_SECONDS,
    DoctorProcesses,
    LookReport,
    due_looks,
    look_every,
)
from lakebound.alerts.lateness import is_late, write_late
from lakebound.alerts.load import InvalidAlertsError, alerts_file, load_alerts
from lakebound.alerts.round import RoundReport
from lakebound.alerts.routes import DEFAULT_ALERTS, AlertsSpec, connections_of
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.control.folder import ControlFolder
from lakebound.redaction import NOT_SHOWN, redacted
from lakebound.settings import Settings
from lakebound.tables.declared import owned_pipelines
from lakebound_airflow.notifications.alerts import report_last_day, tell
from lakebound_airflow.notifications.channels import ping, sender
from lakebound_airflow.notifications.connection_files import ConnectionFiles
from lakebound_airflow.watch.looks import look_at_airflow, look_at_files
from lakebound_airflow.watch.sending import missing_connections, sending_from_here

_POLL_SECONDS = 0.2

log = structlog.get_logger(__name__)


class Watch:
    """One watch of this machine's pipelines."""

    def __init__(self, settings: Settings, stopping: threading.Event, look_every_seconds: float = LOOK_EVERY_SECONDS) -> None:
        """Look at nothing yet.

        Args:
            settings: This machine's.
            stopping: Set when it is to end.
            look_every_seconds: How often the doctor looks at each pipeline.
        """
        self._settings = settings
        self._stopping = stopping
        self._look_every_seconds = look_every_seconds
        self._doctor = DoctorProcesses(settings)
        self._begun: dict[str, float] = {}
        self._files = ConnectionFiles()

    def once(self) -> bool:
        """Run a round, and another when the doctor has looked where that was due; return whether all went well.

        The first one keeps messages from waiting for a look that hangs.
        """
        self._warn()
        try:
            is_good = self._round(self._begin_looks())
            if self._doctor.is_idle:
                return is_good
            problems: list[str] = []
            while not self._doctor.is_idle and not self._stopping.is_set():
                problems += self._reap()
                self._stopping.wait(_POLL_SECONDS)
            return not self._stopping.is_set() and self._round([*problems, *self._reap()]) and is_good
        finally:
            self._doctor.end()

    def run(self, interval_seconds: float) -> None:
        """Run rounds until it is to end.

        Args:
            interval_seconds: From the beginning of a round to that of the next.
        """
        self._warn()
        next_round, problems = time.monotonic(), list[str]()
        try:
            while not self._stopping.is_set():
                problems += self._reap()
                if time.monotonic() >= next_round:
                    next_round = time.monotonic() + interval_seconds
                    self._round([*problems, *self._begin_looks()])
                    problems = []
                self._stopping.wait(min(_POLL_SECONDS, max(0.0, next_round - time.monotonic())))
        finally:
            self._doctor.end()

    def _warn(self) -> None:
        """Say which connections are missing before they are needed: one that may be missing makes no round bad."""
        try:
            connections = connections_of(_alerts(self._settings))
            self._files.read(connections)
            for connection in missing_connections(connections):
                log.warning("connection not found; alerts that need it are kept, and not sent from here", connection=connection)
        except Exception as exc:
            log.error("the connections cannot be looked up", problem=redacted(exc, NOT_SHOWN))

    def _round(self, problems: list[str]) -> bool:
        """Look, tell, and give a sign of life if all of it went well; return whether it did."""
        try:
            alerts = _alerts(self._settings)
            problems += self._files.read(connections_of(alerts))
            loaded = owned_pipelines(self._settings)
            problems += loaded.mistakes.get(self._settings.pipelines, [])  # the folder is not there
            problems += look_at_files(self._settings, loaded)
            problems += look_at_airflow(self._settings, loaded.specs.values())
            problems += report_last_day(self._settings)
            send = sending_from_here(sender(alerts.runbooks), self._stopping.is_set)
            problems += _problems_of(tell(self._settings, send), AlertStore(self._settings.home).read())
            if not problems and alerts.heartbeat is not None:
                ping(alerts.heartbeat)
        except Exception as exc:
            problems.append(f"the round failed: {redacted(exc, NOT_SHOWN)}")
        for problem in problems:
            log.error("the round had a problem", problem=problem)
        return not problems

    def _begin_looks(self) -> list[str]:
        """Begin the doctor's looks that are due; return why that was not possible."""
        now = time.time()
        try:
            names = owned_pipelines(self._settings).specs
            due = due_looks(self._settings, names, now, self._look_every_seconds)
            # A look that failed or was late left no trace: it is not begun again at once.
            due = [name for name in due if now - self._begun.get(name, 0.0) >= self._look_every(name, now)]
            self._begun |= dict.fromkeys(due, now)
            self._doctor.begin(due)
        except Exception as exc:
            return [f"the doctor could not run: {redacted(exc, NOT_SHOWN)}"]
        return []

    def _look_every(self, pipeline: str, now: float) -> float:
        return look_every(ControlFolder(self._settings.home, pipeline), now, self._look_every_seconds)

    def _reap(self) -> list[str]:
        """Write down which looks were late; return which failed."""
        problems: list[str] = []
        try:
            for report in self._doctor.reap():
                if report.problem is not None:
                    problems.append(f"{report.pipeline}: the doctor could not run: {report.problem}")
                self._write_late(report)
        except Exception as exc:
            problems.append(f"the doctor's checks failed: {redacted(exc, NOT_SHOWN)}")
        return problems

    def _write_late(self, report: LookReport) -> None:
        """Write down that a look did not end; of one that failed, once the pipeline was not checked for two looks."""
        pipeline = report.pipeline
        if report.is_late:
            why = (
                f"the doctor did not finish checking {pipeline} within {LOOK_SECONDS:g} s and was stopped: a table, a catalog "
                f"or a broker does not answer"
            )
            write_late(self._settings, pipeline, why)
        elif report.problem is not None and is_late(self._settings, pipeline, time.time() - 2 * self._look_every_seconds):
            write_late(self._settings, pipeline, f"the doctor cannot check {pipeline}: {report.problem}")


def _problems_of(report: RoundReport, state: AlertState) -> list[str]:
    """Return what of a round was not good: also a message that waits for its next try, after one that failed."""
    given_up = [f"channel {channel}: {message} was dropped: {why}" for channel, message, why in report.delivered.given_up]
    waiting = {one.channel: one.problem for one in state.outbox if one.problem and not one.is_unconnected}
    failed = {**waiting, **dict(report.delivered.failed)}
    return [*report.problems, *given_up, *(f"channel {channel}: {problem}" for channel, problem in failed.items())]


def _alerts(settings: Settings) -> AlertsSpec:
    """Return the routes; where the file is wrong the default, as the round does, which says so."""
    try:
        return load_alerts(alerts_file(settings))
    except InvalidAlertsError:
        return DEFAULT_ALERTS
