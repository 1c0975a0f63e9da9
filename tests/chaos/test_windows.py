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
from tests.support.streams.command_line import answer, known_to_commands, lakebound
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.streams.pipelines import Pipeline
from tests.support.streams.windows import Sensors, assert_windows, sensors_pipeline
from tests.support.tables.foreign_hands import take_back
from tests.support.waiting import wait_until

from lakebound.local.broker import Broker
from lakebound.tables.table import open_table

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(3600)]

BY_OFFSETS = (
    ("replay", "events", "--from", "earliest"),
    ("quarantine", "events", "--replay"),
    ("rewind", "events", "--to", "1s ago"),
    ("redo", "events", "--from", "earliest"),
    ("erase", "events", "--where", "readings > 0"),
    ("try", "events"),
)
KILLS = int(os.environ.get("LAKEBOUND_CHAOS_KILLS", "20"))


def wait_landed(application: RunningApplication, pipeline: Pipeline, sensors: Sensors) -> None:
    application.wait_landed({pipeline.spec.topics[0]: sensors.ends()})


def wait_closed(application: RunningApplication, until_ms: int) -> None:
    """Return when all windows that end until then have landed: the batch that closes the last ones has no records."""

    def are_closed() -> bool:
        told = application.progress
        return told is not None and told.windows is not None and told.windows.watermark_ms >= until_ms

    application.wait_for(are_closed, 150, "the last windows")


@only_in_long_form
def test_a_stream_of_windows_lands_each_once_through_stops_and_refuses_commands_that_go_by_offsets(
    tmp_path: Path, broker: Broker, topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2))
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    sensors.send(300)
    sensors.send_far()
    with applications() as starter:
        first = starter.start(pipeline)
        wait_landed(first, pipeline, sensors)
        assert first.stop().verdict == "stopped", first
        sensors.send(300)
        second = starter.start(pipeline)
        second.wait_running()
        known_to_commands(pipeline, monkeypatch, tmp_path / "pipelines")
        for command in BY_OFFSETS:
            said = lakebound(*command, code=1).stderr
            assert "its rows are of windows" in said, said
        until_ms = land_the_rest(second, pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms)
    proof = answer("prove", "events", "--deep")
    told = {one["table"]: one["notes"][-1] for one in proof["tables"] if one["role"] == "target"}
    assert len(told) == 2 and all("are as Kafka's records give them" in note for note in told.values()), told


BETWEEN_TABLES = "kill@after_commit/delta#1,hold@before_commit/iceberg#1"
"""The next start rebuilds to before the batch, and lands it, by its ends and its watermark, in the table that lacks it."""
POINTS = (
    BETWEEN_TABLES,
    "kill@windows_rebuilt#1",
    "kill@batch_begins#3",
    "kill@after_data_files/driver#3",
    "kill@after_commit/land#1",
    "kill@after_commit/iceberg#2,hold@before_commit/delta#2",
    "kill@batch_ends#4",
)
SHORT = (BETWEEN_TABLES,)
"""``tests/spark/test_windows.py`` cuts before and after commits, also of starts that have rebuilt; only a kill leaves nothing
of a process."""


def spoil(pipeline: Pipeline, number: int, kept: Path) -> None:
    """Delete what is left of checkpoints, or tear its files, or put an older copy in the place of each.

    Args:
        pipeline: Whose application is gone.
        number: Decides which of the three.
        kept: Where the copy is that was made the time before.
    """
    place = pipeline.control.folder / "checkpoints"
    folders = sorted(place.iterdir(), key=lambda one: one.stat().st_mtime)
    assert folders, "nothing is left of a killed application's checkpoint"
    older = sorted(kept.iterdir()) if kept.exists() else []
    copy = shutil.copytree(folders[-1], kept / f"{number}")
    if number % 3 == 0:
        shutil.rmtree(place)
    elif number % 3 == 1:
        files = [path for path in folders[-1].rglob("*") if path.is_file()]
        assert files
        for path in files:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        assert older and copy not in older
        for folder in folders:
            shutil.rmtree(folder)
            shutil.copytree(older[-1], folder)


def land_the_rest(application: RunningApplication, pipeline: Pipeline, sensors: Sensors) -> int:
    """Land everything, close all windows, and stop; return the latest end of the windows to judge."""
    wait_landed(application, pipeline, sensors)
    until_ms = sensors.close()
    wait_closed(application, until_ms)
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
        for number, point in enumerate(POINTS if LONG_FORM else SHORT):
            sensors.send(400 if LONG_FORM else 220)
            go_on(pipeline)
            starter.start(pipeline, faults=point).wait_killed(point)
            spoil(pipeline, number, tmp_path / "kept")
        sensors.send(60)
        until_ms = land_the_rest(starter.start(pipeline), pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms, size, 5)


@only_in_long_form
@pytest.mark.parametrize("rule", ["stop@before_commit/iceberg#2", "stop@after_data_files/driver#3", "stop@windows_rebuilt#1"])
def test_a_zombie_lands_no_window_a_second_time(rule: str, tmp_path: Path, broker: Broker, topic: TopicMaker) -> None:
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2)).with_limits(lease_ttl_seconds=2.0)
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    with applications() as starter:
        sensors.send(200)
        first = starter.start(pipeline)
        wait_landed(first, pipeline, sensors)
        assert first.stop().verdict == "stopped", first
        sensors.send(400)
        zombie = starter.start(pipeline, faults=rule)
        zombie.wait_suspended()
        wait_until(lambda: not pipeline.lease_is_live, 30, "the end of the zombie's lease")
        successor = starter.start(pipeline)
        sensors.send(200)
        wait_landed(successor, pipeline, sensors)
        zombie.resume()
        assert zombie.ended().verdict == "superseded", zombie
        until_ms = land_the_rest(successor, pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms)


@only_in_long_form
@pytest.mark.parametrize(("transform", "size"), [("count_in_windows", 5), ("count_in_sliding_windows", 10)])
def test_random_kills_lose_and_double_no_window(
    transform: str, size: int, tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}")
    dice = random.Random(seed)
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2), transform)
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    with applications() as starter:
        for _ in range(KILLS // 2):
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
        until_ms = land_the_rest(starter.start(pipeline), pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms, size, 5)


@only_in_long_form
@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_table_that_was_rolled_back_by_one_batch_gets_it_again_from_the_next_application(
    format: str, tmp_path: Path, broker: Broker, topic: TopicMaker
) -> None:
    pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2))
    sensors = Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])
    with applications() as starter:
        sensors.send(400)
        first = starter.start(pipeline)
        wait_landed(first, pipeline, sensors)
        assert first.stop().verdict == "stopped", first
        [one] = [table for table in pipeline.spec.tables if table.format == format]
        states = [(found.entry.windows, found.version) for found in open_table(one, pipeline.places).entries()]
        serials = {state.serial: version for state, version in states if state is not None}
        take_back(one, pipeline.places, serials[max(serials) - 1])
        sensors.send(100)
        until_ms = land_the_rest(starter.start(pipeline), pipeline, sensors)
    assert_windows(pipeline, sensors, until_ms)
