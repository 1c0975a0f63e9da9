"""What can happen to a pipeline under load. Each fault is injected into a world that lands, and leaves one that should."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from lakebound.control.process_identity import is_running
from lakebound.local.broker import Broker
from lakebound.tables.places import places_of
from tests.support.live_processes import asked_of_each, family_of
from tests.support.streams.applications import Applications, RunningApplication, go_on
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.pipelines import LANES, Pipeline
from tests.support.tables.maintenance import compact_delta, expire_iceberg
from tests.support.waiting import HANGS_SECONDS, wait_until

CATALOG_LOCKED_SECONDS = 120.0
BROKER_GONE_SECONDS = 60.0
DISK_FULL_SECONDS = 15.0 if LONG_FORM else 6.0
FULL_DISK_BYTES = 16 * 1024
LANDED_SECONDS = 300.0


@dataclass
class World:
    """A pipeline under load, the application that lands for it now, and what the faults may do to them."""

    pipeline: Pipeline
    broker: Broker
    topic: str
    starter: Applications
    dice: random.Random
    app: RunningApplication
    starts: int = 0

    def restart(self) -> None:
        """Start the next application, as Airflow would; lanes in turn."""
        self.starts += 1
        go_on(self.pipeline)
        self.app = self.starter.start(self.pipeline.with_lane(LANES[self.starts % 2]), own_jvm=True)

    def ensure_app(self) -> None:
        """Start one if the present one has ended."""
        if self.app.process.poll() is not None:
            self.restart()

    def wait_landing_of(self, moment: float) -> None:
        """Return when records that Kafka received after the moment (epoch seconds) are landed by the present application."""

        def landed() -> bool:
            self.ensure_app()
            progress = self.app.progress
            return progress is not None and (progress.newest_record_ms or 0) > moment * 1000

        wait_until(landed, LANDED_SECONDS, f"records of after {moment:.0f} landed; {self.app}")

    @property
    def checkpoint(self) -> Path:
        """Where the present application's query keeps its files."""
        roots = sorted(self.pipeline.control.checkpoint(self.app.app_id).glob("**/offsets"))
        return roots[-1].parent if roots else self.pipeline.control.checkpoint(self.app.app_id)


Fault = Callable[[World], None]


def kill_driver(world: World) -> None:
    """Kill -9 of the whole application."""
    world.app.kill()
    world.restart()


def sigterm_group(world: World) -> None:
    """SIGTERM to all its processes, as an orchestrator sends it."""
    os.killpg(world.app.process.pid, signal.SIGTERM)
    world.app.wait_exit(120)
    world.restart()


def kill_while_starting(world: World) -> None:
    """Kill -9, and kill -9 again while the next one starts."""
    world.app.kill()
    world.restart()
    time.sleep(world.dice.uniform(1, 8))  # the moment of the second kill is what is random here
    kill_driver(world)


def zombie(world: World) -> None:
    """Suspended until another has taken the lease and landed; then it wakes up."""
    sleeper = world.app
    os.killpg(sleeper.process.pid, signal.SIGSTOP)
    wait_until(lambda: not world.pipeline.lease_is_live, 60, "the end of the suspended application's lease")
    world.restart()
    world.wait_landing_of(time.time())
    sleeper.resume()
    assert sleeper.wait_exit(120) == 4, f"the zombie was not superseded: {sleeper}"


def two_drivers(world: World) -> None:
    """A second application beside the first one."""
    second = world.starter.start(world.pipeline)
    assert second.wait_exit(150) != 0, f"a second application beside the first: {second}"
    assert "is being written by" in second.log_tail(), second


def checkpoint_deleted(world: World) -> None:
    """Kill -9, and the checkpoint's folder is gone."""
    folder = world.checkpoint
    world.app.kill()
    shutil.rmtree(folder)
    world.restart()


def checkpoint_damaged(world: World) -> None:
    """Kill -9, and metadata, offsets or commits are gone, the last offset file is cut, or an older copy is put back."""
    folder = world.checkpoint
    older = folder.with_name(folder.name + "-copy")
    shutil.copytree(folder, older, ignore_dangling_symlinks=True, dirs_exist_ok=True)
    world.wait_landing_of(time.time())
    world.app.kill()
    kind = world.dice.choice(("metadata", "offsets", "commits", "cut", "older"))
    if kind == "metadata":
        (folder / "metadata").unlink()
    elif kind == "cut":
        last = max((file for file in (folder / "offsets").iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
        last.write_bytes(last.read_bytes()[: last.stat().st_size // 2])
    elif kind == "older":
        shutil.rmtree(folder)
        older.rename(folder)
    else:
        shutil.rmtree(folder / kind)
    world.restart()


def catalog_locked(world: World) -> None:
    """Somebody holds the Iceberg catalog's database for two minutes."""
    with _locked(world.pipeline.settings.warehouse / "iceberg" / "catalog.db"):
        time.sleep(CATALOG_LOCKED_SECONDS)


def broker_gone(world: World) -> None:
    """Kill -9 of the broker; it comes back after a minute."""
    world.broker.kill()
    time.sleep(BROKER_GONE_SECONDS)
    world.broker.start()


def disk_full(world: World) -> None:
    """For some seconds no file of the application can grow (a file size limit: the error differs from ENOSPC by name)."""
    family = family_of(world.app.process.pid)
    asked_of_each(family, lambda process: process.rlimit(psutil.RLIMIT_FSIZE, (FULL_DISK_BYTES, -1)))
    time.sleep(DISK_FULL_SECONDS)
    asked_of_each(filter(is_running, family), lambda process: process.rlimit(psutil.RLIMIT_FSIZE, (-1, -1)))


def partition_added(world: World) -> None:
    """The topic gets one more partition."""
    client = AdminClient({"bootstrap.servers": world.broker.bootstrap_servers})
    count = len(client.list_topics(world.topic, timeout=30).topics[world.topic].partitions)
    client.create_partitions([NewPartitions(world.topic, count + 1)])[world.topic].result(timeout=HANGS_SECONDS)


def compacted_and_expired(world: World) -> None:
    """Kill -9; before the restart Delta is compacted, and the history of both tables is gone up to the last commit."""
    world.app.kill()
    for spec in world.pipeline.spec.tables:
        (compact_delta if spec.format == "delta" else expire_iceberg)(spec, places_of(world.pipeline.settings, "default"))
    world.restart()


FAULTS: dict[str, Fault] = {
    fault.__name__.replace("_", " "): fault
    for fault in (
        kill_driver,
        sigterm_group,
        kill_while_starting,
        zombie,
        two_drivers,
        checkpoint_deleted,
        checkpoint_damaged,
        catalog_locked,
        broker_gone,
        disk_full,
        partition_added,
        compacted_and_expired,
    )
}


@contextmanager
def _locked(database: Path) -> Iterator[None]:
    connection = sqlite3.connect(database, timeout=60, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()
