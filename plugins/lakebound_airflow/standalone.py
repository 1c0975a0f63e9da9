"""``python -m lakebound_airflow.standalone``: Airflow's own ``standalone``, whose scheduler waits for the API server.

Airflow starts all components at once. A task asks the API server from its first moment on, and fails where it does not listen
yet: on a busy machine that is later than the scheduler starts tasks, and the first runs of DAGs after a start failed. With the
argument ``scheduler`` the module is that component: it imports what it needs while it waits.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module

import httpx

SCHEDULER = "scheduler"
POLL_SECONDS = 0.25
ANSWER_SECONDS = 60.0
"""The server prepares the API of the tasks at its first request, which takes many seconds on a busy machine."""
_NEEDED = ("airflow.cli.commands.scheduler_command", "airflow.executors.local_executor", "airflow.jobs.scheduler_job_runner")


def answers(url: str, timeout_seconds: float = ANSWER_SECONDS) -> bool:
    """Return whether the API of the tasks is there.

    Args:
        url: Of that API (``[core] execution_api_server_url``).
        timeout_seconds: How long an answer may take.
    """
    try:
        # This machine's own address: the environment's proxies are not asked.
        with httpx.Client(trust_env=False, timeout=timeout_seconds) as client:
            return client.get(f"{url.rstrip('/')}/health").is_success
    except httpx.HTTPError:
        return False


def run_scheduler(is_ready: Callable[[], bool], run: Callable[[], None]) -> None:
    """Run the scheduler when the API server answers. Until then a signal ends the process, as nothing was started.

    Args:
        is_ready: Whether the API server answers tasks.
        run: Runs Airflow's command.
    """
    print("the scheduler starts when the API server answers", flush=True)
    for name in _NEEDED:
        import_module(name)
    while not is_ready():
        time.sleep(POLL_SECONDS)
    run()


def command_of(component: list[str]) -> list[str]:
    """Return the command of one component.

    Args:
        component: Airflow's command, such as ``triggerer``.
    """
    program = ["-m", __spec__.name] if component == [SCHEDULER] else ["-m", "airflow"]
    return [sys.executable, *program, *component]


def run_all() -> None:
    """Run all components until it is interrupted."""
    from airflow.cli.commands import standalone_command

    class Component(standalone_command.SubCommand):
        """A process of a component, whose output is passed on."""

        def run(self) -> None:
            self.process = subprocess.Popen(
                command_of(self.command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.env
            )
            for line in self.process.stdout or ():
                self.parent.output_queue.append((self.name, line))

    standalone_command.SubCommand = Component  # type: ignore[misc]
    standalone_command.StandaloneCommand().run()  # type: ignore[no-untyped-call]


def main(arguments: list[str]) -> None:
    """Run all components, or the one that is named."""
    if arguments != [SCHEDULER]:
        run_all()
        return
    from airflow.__main__ import main as run_command
    from airflow.configuration import conf

    sys.argv = ["airflow", SCHEDULER]
    run_scheduler(lambda: answers(conf.get_mandatory_value("core", "execution_api_server_url")), run_command)


if __name__ == "__main__":
    main(sys.argv[1:])
