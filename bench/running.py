"""What the freshness benchmarks run: the pipeline, its application, the generator, and what their processes cost."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

import psutil
from value_formats import Encoding

from lakebound.landing.spark_command import spark_environment
from lakebound.local.broker import Broker
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec

SCHEMA = "event_id STRING NOT NULL, device STRING, value DOUBLE, kind STRING, pad STRING"


class Produced(Protocol):
    """What the generator is to make: records per second, of about so many bytes each."""

    @property
    def rate(self) -> int: ...

    @property
    def record_bytes(self) -> int: ...


def pipeline(topic: str, bootstrap_servers: str, **changes: Any) -> PipelineSpec:
    """Return the pipeline: one topic into one table of each format, but for what is changed."""
    return PipelineSpec.model_validate(
        {
            "pipeline": "bench",
            "topics": [topic],
            "connection": {"bootstrap_servers": bootstrap_servers},
            "value": {"format": "json", "schema": SCHEMA},
            "freshness": "0ms",
            "tables": [{"format": "delta", "name": "bench.events"}, {"format": "iceberg", "name": "bench.events"}],
            **changes,
        }
    )


@contextmanager
def own_broker() -> Iterator[tuple[Settings, Broker]]:
    """Run a broker in a folder that is gone at the end, which is also the home of the settings."""
    with tempfile.TemporaryDirectory(prefix="lakebound-bench-") as folder:
        settings = load_settings({**os.environ, "LAKEBOUND_HOME": folder})
        broker = Broker(Path(folder) / "kafka", settings.jars)
        broker.start()
        try:
            yield settings, broker
        finally:
            broker.stop()


def start(command: list[str], folder: Path, **how: Any) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own; its output goes to ``app.log`` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "app.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **how)


@contextmanager
def ending(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Kill the whole process group at the end, if anything of it still runs."""
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


@contextmanager
def running_application(
    command: list[str], settings: Settings, *, secrets: Iterable[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Spark application, which inherits the variables that hold its secrets."""
    with ending(start(command, settings.home, env=spark_environment(settings, secrets=secrets))) as process:
        yield process


@contextmanager
def producing(
    load: Produced,
    topic: str,
    broker: Broker,
    *,
    dirty: bool = False,
    linger_ms: float = 5,
    encoding: Encoding | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the generator, which prints its report when it is asked to end."""
    options: dict[str, object] = {
        "--bootstrap-servers": broker.bootstrap_servers,
        "--topic": topic,
        "--rate": load.rate,
        "--seconds": 3600,
    }
    options |= {"--record-bytes": load.record_bytes, "--linger-ms": linger_ms}
    words = [str(word) for pair in options.items() for word in pair] + (["--dirty"] if dirty else [])
    words += [] if encoding is None else encoding.words
    generator = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("generator.py")), *words], stdout=subprocess.PIPE
    )
    try:
        yield generator
    finally:
        if generator.poll() is None:
            generator.kill()
            generator.wait(timeout=30)


def family_of(pid: int) -> list[psutil.Process]:
    """Return a process and all that it started."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def cpu_seconds_of(pid: int) -> float:
    """Return the CPU seconds of a process and all that it started, those that have ended included.

    A process that ends while it is asked counts with its parent's from then on.
    """
    seconds = 0.0
    for process in family_of(pid):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def cpu_seconds_of_children() -> float:
    """Return the CPU seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
