"""Starting an application that a command then follows."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lakebound.errors import SubmitFailedError
from lakebound.settings import Settings


def start(command: list[str], log: Path, folder: Path, pipeline: str, settings: Settings) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, so that Ctrl-C reaches only who started it; its output goes into the log.

    Raises:
        SubmitFailedError: It cannot be started.
    """
    from lakebound.submit import spark_environment

    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=spark_environment(settings),
                start_new_session=True,
            )
    except OSError as exc:
        raise SubmitFailedError(pipeline, f"{command[0]}: {exc.strerror}") from exc
