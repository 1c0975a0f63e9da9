"""The lowest priority for this Python and the JVM beside it. On Linux it is each thread's own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from lakebound.landing.background import LOWEST, may_wait


def lower_priority() -> None:
    """Let everything else on this machine go first, on its cores and on its disks; later threads inherit it.

    What the system does not allow is left as it is.
    """
    for thread in _threads():
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, LOWEST)
        may_wait(thread)
        if hasattr(psutil, "IOPRIO_CLASS_IDLE"):
            with suppress(OSError, psutil.Error):
                psutil.Process(thread).ionice(psutil.IOPRIO_CLASS_IDLE)


def _threads() -> Iterator[int]:
    processes = [os.getpid()]
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit's JVM started this Python
        processes.append(os.getppid())
    for process in processes:
        tasks = Path(f"/proc/{process}/task")
        yield from (int(task.name) for task in tasks.iterdir()) if tasks.is_dir() else (process,)
