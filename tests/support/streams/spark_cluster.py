"""A Spark standalone cluster of processes of its own, started from the pip package, on the loopback interface."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pyspark.find_spark_home import _find_spark_home

from lakebound.control import processes
from lakebound.control.ports import free_port, is_open
from lakebound.landing.spark_command import QUICK_START
from tests.support.waiting import HANGS_SECONDS, wait_until

START_SECONDS = 90.0
_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class SparkCluster:
    """A master, its addresses, and the logs of its processes.

    Attributes:
        master: Where applications get executors.
        rest_url: The REST server.
        page: The master's web page.
        folder: Logs, and the workers' folders.
        workers: The processes of the workers.
    """

    master: str
    rest_url: str
    page: str
    folder: Path
    workers: list[processes.ProcessRecord] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """Return what the master says of its workers, drivers and applications."""
        with urlopen(f"{self.page}/json/", timeout=HANGS_SECONDS) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def executor_cores(self) -> list[int]:
        """Return the cores that the executors of each running application have got; 0 for one that waits for some."""
        return [app["cores"] for app in self.state()["activeapps"]]


@contextmanager
def spark_cluster(
    folder: Path,
    *,
    workers: int = 2,
    cores: int = 3,
    conf: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[SparkCluster]:
    """Run a master and workers.

    Args:
        folder: For logs and work.
        workers: Their number.
        cores: Of each worker.
        conf: Further settings of master and workers, in a file that only the owner may read.
        environment: Further variables of master and workers.
    """
    port, rest_port, page_port = free_port(), free_port(), free_port()
    own = {"spark.master.rest.enabled": "true", "spark.master.rest.port": str(rest_port), "spark.master.rest.host": "127.0.0.1"}
    file = folder / "spark.conf"
    file.touch(mode=0o600)
    file.write_text("".join(f"{key} {value}\n" for key, value in {**own, **(conf or {})}.items()))
    inherited = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1", "HOME": str(folder)}
    inherited["SPARK_DAEMON_JAVA_OPTS"] = QUICK_START
    inherited |= {name: os.environ[name] for name in ("PYTHONPATH", "JAVA_HOME") if name in os.environ}
    started: list[processes.ProcessRecord] = []

    def run(kind: str, name: str, *arguments: str) -> processes.ProcessRecord:
        options = ["--host", "127.0.0.1", "--properties-file", str(file)]
        spark_class = Path(_find_spark_home()) / "bin" / "spark-class"
        command = ["/bin/bash", str(spark_class), f"{_DEPLOY}.{kind.lower()}.{kind}", *options, *arguments]
        log = folder / f"{name}.log"
        started.append(processes.start(name, command, log, {**inherited, **(environment or {})}, folder=folder))
        return started[-1]

    cluster = SparkCluster(
        f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{rest_port}", f"http://127.0.0.1:{page_port}", folder
    )
    try:
        run("Master", "master", "--port", str(port), "--webui-port", str(page_port))
        wait_until(lambda: is_open(port) and is_open(rest_port), START_SECONDS, f"the master ({folder}/master.log)")
        for number in range(workers):
            work = str(folder / f"work-{number}")
            size = ["--cores", str(cores), "--memory", f"{cores}g", "--work-dir", work, "--webui-port", "0"]
            cluster.workers.append(run("Worker", f"worker-{number}", *size, cluster.master))
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            registered = lambda log=log: "Successfully registered" in log.read_text(errors="replace")  # noqa: E731
            wait_until(registered, START_SECONDS, f"a worker ({log})")
        yield cluster
    finally:
        for record in reversed(started):
            processes.kill(record)
