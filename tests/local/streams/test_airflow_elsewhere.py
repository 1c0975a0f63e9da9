"""Worker and triggerer in two real PID namespaces, as in two containers: who submits is in one, who watches in the other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401
from tests.support.waiting import HANGS_SECONDS, wait_until

from lakebound.control.progress import read_outcome
from lakebound.control.submission import read_submission
from lakebound.settings import Settings
from lakebound_airflow.triggers.stream import StreamTrigger

APART = ["unshare", "--pid", "--fork", "--mount-proc"]
WORKER = """
import sys
from tests.support.streams.stand_ins import FAKE_APPS, OWNER, orders
from lakebound.landing import local_launch
from lakebound.settings import load_settings
from lakebound_airflow.backends.local import LocalBackend

def command(run_spec, _, *, ui_port):
    return [sys.executable, str(FAKE_APPS / "ingest_stream.py"), "--run-spec", run_spec.model_dump_json(by_alias=True)]

local_launch.spark_submit_command = command
settings = load_settings()
print(LocalBackend(settings).submit(orders(settings), OWNER).app_id, flush=True)
sys.stdin.read()
"""
REPOSITORY = Path(__file__).parents[3]


def _can_be_apart() -> bool:
    try:
        return subprocess.run([*APART, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not _can_be_apart(), reason="this user may not make a PID namespace")


@pytest.fixture
def worker(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """A worker in a PID namespace of its own, which has submitted an application; all of the namespace ends with it."""
    path = os.pathsep.join([str(REPOSITORY), *sys.path])
    process = subprocess.Popen(
        [*APART, sys.executable, "-c", WORKER],
        env={**os.environ, **settings.environment(), "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(HANGS_SECONDS)


def test_a_worker_and_a_triggerer_apart_are_refused_and_the_application_can_still_be_stopped(
    worker: subprocess.Popen[str], settings: Settings
) -> None:
    assert worker.stdout is not None
    app_id, control = worker.stdout.readline().strip(), orders(settings).control
    submission = read_submission(control)
    assert submission is not None and submission.pid_namespace != os.readlink("/proc/self/ns/pid")

    async def first() -> dict[str, str]:
        async with asyncio.timeout(60):
            return await StreamTrigger(control.pipeline, str(control.home), app_id).wait()

    seen = asyncio.run(first())
    assert seen["event"] == "elsewhere"
    assert "one PID namespace" in seen["reason"]
    control.stop_marker(app_id).touch()
    wait_until(lambda: read_outcome(control, app_id), 20, "its end")
