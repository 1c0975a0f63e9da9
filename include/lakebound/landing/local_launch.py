"""Starts applications on this machine: detached spark-submit processes that outlive whoever starts them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import suppress

import psutil

from lakebound.control.applications import kill_leftovers, living_submission
from lakebound.control.folder import ControlFolder, locked
from lakebound.control.ports import free_port
from lakebound.control.process_identity import identity_of
from lakebound.control.processes import handle_of, start
from lakebound.control.submission import BackendName, Owner, Submission, read_submission, write_submission
from lakebound.errors import LakeboundError, SubmitFailedError
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.spark_command import app_name, has_ui, run_environment, spark_submit_command, stream_environment
from lakebound.settings import Settings
from lakebound.tables.full_disk import full_disk_error

Handle = subprocess.Popen[bytes]


def launch_stream(orders: RunSpec, settings: Settings, owner: Owner | None = None) -> tuple[Submission, Handle | None]:
    """Start a pipeline's application and record it; return its record and its process.

    Submitters take turns by a lock, and the record is written before the process starts: a submitter that is killed in
    between leaves a process that its successor finds by name.

    Args:
        orders: What it is told.
        settings: This machine's places.
        owner: The try of an Airflow task that has it in its care.

    Returns:
        Where an application lives already for the pipeline, that one's record, without a process.

    Raises:
        SubmitFailedError: It cannot be started.
        DiskFullError: Neither, because the disk of the state is full.
    """
    control = orders.control
    with locked(control.submission):
        _complete_record(control)
        living = living_submission(control)
        if living is not None:
            return living, None
        before = read_submission(control)
        kill_leftovers(before)
        try:
            return _start_stream(orders, settings, owner)
        except (LakeboundError, OSError) as exc:
            # Nothing was started: how the application before it ended is still what a person has to know. On a full disk the
            # record of that was not replaced.
            with suppress(OSError):
                if before is None:
                    control.submission.unlink(missing_ok=True)
                else:
                    write_submission(control, before)
            full = full_disk_error(exc, f"pipeline {control.pipeline!r} could not be submitted", control.folder)
            raise full or SubmitFailedError(control.pipeline, str(exc)) from exc


def launch_beside(command: Sequence[str], orders: RunSpec, settings: Settings) -> tuple[Submission, Handle]:
    """Start an application that works beside the stream; return its record, which no file keeps, and its process.

    Args:
        command: What starts it.
        orders: What it is told; they name its run and its log.
        settings: This machine's places.

    Raises:
        SubmitFailedError: It cannot be started.
    """
    log = orders.control.log(orders.app_id)
    environment = run_environment(orders, settings)
    try:
        process = start(orders.app_id, command, log, environment=environment, folder=log.parent)
    except (LakeboundError, OSError) as exc:
        raise SubmitFailedError(orders.spec.pipeline, str(exc)) from exc
    return Submission(app_id=orders.app_id, log=log).led_by(process.process), handle_of(process)


def _start_stream(orders: RunSpec, settings: Settings, owner: Owner | None) -> tuple[Submission, Handle]:
    control, ui_port = orders.control, free_port()
    intent = orders.submission(
        BackendName.LOCAL,
        owner,
        log=control.log(orders.app_id),
        spark_ui=f"http://127.0.0.1:{ui_port}" if has_ui(settings) else None,
    )
    write_submission(control, intent)
    process = start(
        orders.app_id,
        spark_submit_command(orders, settings, ui_port=ui_port),
        control.log(orders.app_id),
        environment=stream_environment(orders, settings),
        folder=control.folder,
    )
    submission = intent.led_by(process.process)
    write_submission(control, submission)
    return submission, handle_of(process)


def _complete_record(control: ControlFolder) -> None:
    """Complete a record whose submitter died between starting the process and writing down its pid."""
    submission = read_submission(control)
    if submission is None or submission.backend is not BackendName.LOCAL or submission.pid is not None:
        return
    name = app_name(submission.app_id)
    for process in psutil.process_iter(["cmdline"]):
        if name in (process.info["cmdline"] or ()):
            with suppress(psutil.NoSuchProcess):  # it ends meanwhile
                write_submission(control, submission.led_by(identity_of(process.pid)))
            return
