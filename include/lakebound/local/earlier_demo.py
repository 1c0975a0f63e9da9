"""A demo that runs, or that was killed: only its own folder knows of its process, its services and its streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from lakebound.control.process_identity import find, identity_of
from lakebound.control.processes import ProcessRecord, is_alive, wait_until
from lakebound.local import stack
from lakebound.settings import Settings

END_DEADLINE_SECONDS = 180.0
"""A demo that is asked to end stops Airflow, its streams and Kafka first."""


def demo_home(settings: Settings) -> Path:
    """Return the folder that a demo has instead of LAKEBOUND_HOME."""
    return settings.home / "demo"


def record_demo(home: Path) -> None:
    """Write down that this process runs the demo.

    Args:
        home: The demo's folder.
    """
    ProcessRecord.of(identity_of(os.getpid()), "demo", Path(os.devnull)).save(_file(home))


def forget_demo(home: Path) -> None:
    """Write down that no process runs the demo any more."""
    _file(home).unlink(missing_ok=True)


def end_demo(settings: Settings, say: Callable[[str], None], who: str) -> None:
    """End a demo: one that runs as Ctrl-C does, and what is left of one that was killed.

    Args:
        settings: Of the home in which the demo was started.
        say: Receives lines of progress.
        who: The command that ends it.

    Raises:
        DeadlineExceededError: The demo, or one of its streams, does not end in time.
        ServiceError: A process survived SIGKILL.
    """
    home = demo_home(settings)
    if not home.is_dir():
        return
    record = ProcessRecord.load(_file(home))
    if record is not None and record.pid != os.getpid() and is_alive(record):
        say(f"{who}: a demo runs (process {record.pid}); it is stopped first, as Ctrl-C in its terminal does")
        with suppress(psutil.NoSuchProcess):
            if process := find(record.process):
                process.terminate()
                process.resume()  # one that was suspended by Ctrl-Z would not hear it
        wait_until(lambda: not is_alive(record), END_DEADLINE_SECONDS, f"the end of the demo (process {record.pid})")
    own = replace(settings, home=home)
    if any(service.running for service in stack.status(own)):
        say(f"{who}: an earlier demo was killed; what it left is stopped first")
    stack.down(own, lambda line: None)


def _file(home: Path) -> Path:
    return home / "process.json"
