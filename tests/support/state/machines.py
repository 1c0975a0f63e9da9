"""Machines that share nothing but a bucket: each has a name, a boot and a home of its own, and runs the real commands."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from lakebound.control.process_identity import is_running
from tests.support.live_processes import kill_all, processes_with
from tests.support.streams.pipelines import REPOSITORY
from tests.support.waiting import wait_until

STARTS = ("lakebound.cli.process",)
"""What its processes run; see tests/support/reached_tests.py."""
_COMMAND = Path(sys.executable).with_name("lakebound")
_OTHER = Path(__file__).with_name("another_machine")
COMMAND_SECONDS = 180.0


class Machine:
    """One machine.

    Args:
        name: Its host name.
        folder: What is on its disk.
        environ: Further variables that all machines have: where state, tables and keys are.
    """

    def __init__(self, name: str, folder: Path, environ: Mapping[str, str]) -> None:
        self.name = name
        self.home = folder / name
        self.environ = {
            **os.environ,
            **environ,
            "LAKEBOUND_HOME": str(self.home),
            "LAKEBOUND_TEST_MACHINE": name,
            "PYTHONPATH": os.pathsep.join(str(part) for part in (_OTHER, REPOSITORY, REPOSITORY / "spark_apps")),
        }

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command of ``lakebound``, and return what it prints."""
        done = subprocess.run(
            [str(_COMMAND), *arguments], env=self.environ, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        assert done.returncode == code, f"{self.name}: lakebound {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, *arguments: str, code: int = 0) -> Any:
        """Run a command with ``--json``, and return what it says."""
        return json.loads(self.run(*arguments, "--json", code=code))

    def status(self, pipeline: str) -> dict[str, Any]:
        """Return what ``lakebound status`` says of a pipeline here."""
        found: dict[str, Any] = self.ask("status", pipeline)["pipelines"][0]
        return found

    def log_tail(self) -> str:
        """Return the ends of its applications' logs."""
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in self.home.glob("pipelines/*/logs/*.log"))

    def processes(self) -> list[psutil.Process]:
        """Return what of it runs, and nothing of a machine with its name in another test."""
        return list(filter(is_running, processes_with("LAKEBOUND_HOME", str(self.home))))

    def die(self) -> None:
        """Kill all that runs on it at once, and delete its disk."""
        kill_all(self.processes())
        wait_until(lambda: not self.processes(), 30, f"the end of all that runs on {self.name}")
        shutil.rmtree(self.home, ignore_errors=True)
