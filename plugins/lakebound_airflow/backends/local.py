"""Applications as detached spark-submit processes on this machine: they outlive the task, the worker and Airflow."""

from __future__ import annotations

import psutil

from lakebound.control.applications import kill_leftovers, living_submission, submission_is_alive
from lakebound.control.folder import ControlFolder, locked
from lakebound.control.ports import free_port
from lakebound.control.process_identity import identity_of
from lakebound.control.processes import last_lines, start
from lakebound.control.submission import BackendName, Owner, Submission, read_submission, write_submission
from lakebound.errors import LakeboundError, SubmitFailedError
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import app_name, spark_environment, spark_submit_command
from lakebound.settings import Settings


class LocalBackend:
    """Each application leads a session of its own, because Airflow signals a task's whole process group."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def submit(self, run_spec: RunSpec, owner: Owner | None) -> Submission:
        """Start the application, or return the one that already lives for the pipeline.

        The lock makes submitters take turns, and the record is written before the process starts: a submitter that is
        killed in between leaves a process that its successor finds by name.

        Raises:
            SubmitFailedError: It could not be started.
        """
        control = run_spec.control
        with locked(control.submission):
            _find_unrecorded(control)
            living = living_submission(control)
            if living is not None:
                return living
            kill_leftovers(read_submission(control))
            try:
                return self._start(run_spec, owner)
            except (LakeboundError, OSError) as exc:
                raise SubmitFailedError(control.pipeline, str(exc)) from exc

    def _start(self, run_spec: RunSpec, owner: Owner | None) -> Submission:
        control = run_spec.control
        ui_port = free_port()
        intent = Submission(
            app_id=run_spec.app_id,
            backend=BackendName.LOCAL,
            log=control.log(run_spec.app_id),
            generation=run_spec.generation,
            source_hash=run_spec.source_hash,
            spark_ui=f"http://127.0.0.1:{ui_port}",
            owner=owner,
        )
        write_submission(control, intent)
        record = start(
            run_spec.app_id,
            spark_submit_command(run_spec, self._settings, ui_port=ui_port),
            control.log(run_spec.app_id),
            environment=spark_environment(self._settings),
            folder=control.folder,
        )
        submission = intent.led_by(record.process)
        write_submission(control, submission)
        return submission

    def is_alive(self, control: ControlFolder, submission: Submission) -> bool:
        """Whether the application lives, be it still starting or just ending."""
        return submission_is_alive(control, submission)

    def kill(self, submission: Submission) -> bool:
        """End the application's whole session, Python and JVM, at once."""
        return kill_leftovers(submission)

    def log_tail(self, submission: Submission, lines: int = 20) -> str:
        """Return the last lines of its log."""
        return last_lines(submission.log, lines) if submission.log else ""


def _find_unrecorded(control: ControlFolder) -> None:
    """Complete a record whose submitter died between starting the process and writing down its pid."""
    submission = read_submission(control)
    if submission is None or submission.backend is not BackendName.LOCAL or submission.pid is not None:
        return
    name = app_name(submission.app_id)
    for process in psutil.process_iter(["cmdline"]):
        if name in (process.info["cmdline"] or ()):
            write_submission(control, submission.led_by(identity_of(process.pid)))
            return
