"""Windows land once, whatever happens: kills, zombies, and checkpoints that are deleted, torn or older copies.

The oracle is plain Python: it knows each reading that was sent. Every closed window must have exactly the readings of its time
that are not in quarantine, once, in both tables; and a reading is either in a window, filtered, or in quarantine.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.applications import RunningApplication, applications, go_on
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.streams.pipelines import Pipeline
from tests.support.streams.windows import Sensors, assert_windows, landed_windows, sensors_pipeline
from tests.support.waiting import wait_until

from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("LAKEBOUND_CHAOS_KILLS", "20"))


def wait_landed(application: RunningApplication, pipeline: Pipeline, sensors: Sensors) -> None:
    application.wait_landed({pipeline.spec.topics[0]: sensors.ends()})


def wait_closed(application: RunningApplication, pipeline: Pipeline, until_ms: int) -> None:
    """Return when a window of the last second before is in each table: the batch that closes it has no records."""

    def are_closed() -> bool:
        return all(
            max((row[0] for row in landed_windows(pipeline.read(table))), default=0) > until_ms - 6_000
            for table in pipeline.spec.tables
        )

    application.wait_for(are_closed, 150, "the last windows")


# Each application has a JVM of its own: in the shared one, Hadoop's local file system is that of pipelines without state.


@only_in_long_form
def test_a_stream_of_windows_lands_each_once_through_stops_and_a_new_start(
    tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2))
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    sensors.send(300)
    sensors.send_far()
    with applications() as starter:
        first = starter.start(pipeline, own_jvm=True)
        wait_landed(first, pipeline, sensors)
        assert first.stop().verdict == "stopped", first
        sensors.send(300)
        second = starter.start(pipeline, own_jvm=True)
        until_ms = land_the_rest(second, pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms)


POINTS = (
    "kill@windows_rebuilt#1",
    "kill@batch_begins#3",
    "kill@after_data_files/driver#3",
    "kill@after_commit/land#1",
    "kill@after_commit/delta#1,hold@before_commit/iceberg#1",
    "kill@after_commit/iceberg#2,hold@before_commit/delta#2",
    "kill@batch_ends#4",
)
SHORT = ("kill@after_commit/delta#1,hold@before_commit/iceberg#1",)
"""``tests/spark/test_windows.py`` cuts at every commit, but only a kill leaves nothing of a process."""


def spoil(pipeline: Pipeline, number: int) -> None:
    """Delete what is left of checkpoints, or tear its files, or put the oldest copy in the place of each.

    Args:
        pipeline: Whose application is gone.
        number: Decides which of the three.
    """
    folders = sorted((pipeline.control.folder / "checkpoints").iterdir(), key=lambda one: one.stat().st_mtime)
    assert folders, "nothing is left of a killed application's checkpoint"
    if number % 3 == 0:
        shutil.rmtree(pipeline.control.folder / "checkpoints")
    elif number % 3 == 1:
        files = [path for path in folders[-1].rglob("*") if path.is_file()]
        assert files
        for path in files:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        for folder in folders[1:]:
            shutil.rmtree(folder)
            shutil.copytree(folders[0], folder)


def land_the_rest(application: RunningApplication, pipeline: Pipeline, sensors: Sensors) -> int:
    """Land everything, close all windows, and stop; return the latest end of the windows to judge."""
    wait_landed(application, pipeline, sensors)
    until_ms = sensors.close()
    wait_closed(application, pipeline, until_ms)
    assert application.stop().verdict == "stopped", application
    return until_ms


@pytest.mark.parametrize(
    ("transform", "size"),
    [("count_in_windows", 5), pytest.param("count_in_sliding_windows", 10, marks=only_in_long_form)],
)
def test_killed_at_every_named_point_every_window_lands_once(
    transform: str, size: int, tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2), transform)
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    with applications() as starter:
        sensors.send(400)
        first = starter.start(pipeline, own_jvm=True)
        wait_landed(first, pipeline, sensors)
        assert first.stop().verdict == "stopped", first
        for number, point in enumerate(POINTS if LONG_FORM else SHORT):
            sensors.send(400)
            go_on(pipeline)
            starter.start(pipeline, faults=point).wait_killed(point)
            spoil(pipeline, number)
        sensors.send(100)
        until_ms = land_the_rest(starter.start(pipeline, own_jvm=True), pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms, size, 5)


@only_in_long_form
@pytest.mark.parametrize("rule", ["stop@before_commit/iceberg#2", "stop@after_data_files/driver#3", "stop@windows_rebuilt#1"])
def test_a_zombie_lands_no_window_a_second_time(rule: str, tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2)).with_limits(lease_ttl_seconds=2.0)
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    with applications() as starter:
        sensors.send(200)
        first = starter.start(pipeline, own_jvm=True)
        wait_landed(first, pipeline, sensors)
        assert first.stop().verdict == "stopped", first
        sensors.send(400)
        zombie = starter.start(pipeline, faults=rule)
        zombie.wait_suspended()
        wait_until(lambda: not pipeline.lease_is_live, 30, "the end of the zombie's lease")
        successor = starter.start(pipeline, own_jvm=True)
        sensors.send(200)
        wait_landed(successor, pipeline, sensors)
        zombie.resume()
        assert zombie.ended().verdict == "superseded", zombie
        until_ms = land_the_rest(successor, pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms)


@only_in_long_form
def test_random_kills_lose_and_double_no_window(tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}")
    dice = random.Random(seed)
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2))
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    with applications() as starter:
        for _ in range(KILLS):
            application = starter.start(pipeline, own_jvm=True)
            sensors.send(200)
            if dice.random() > 0.2:
                application.wait_running()
            # Not a wait for luck: the moment of the kill is what is random here.
            for _ in range(dice.randrange(1, 20)):
                sensors.send(20)
                time.sleep(dice.uniform(0, 0.4))
            application.kill()
            go_on(pipeline)
        until_ms = land_the_rest(starter.start(pipeline, own_jvm=True), pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms)
