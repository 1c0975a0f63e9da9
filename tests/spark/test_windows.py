"""Windows land once: cut before and after every commit, and begun again from the ledger each time.

One Spark serves all starts; a cut is an error at a commit, after which nothing but the tables is known. Kills of whole
applications are in ``tests/chaos/test_windows.py``.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from pyspark.sql import SparkSession
from tests.support.kafka.makers import TopicMaker
from tests.support.streams.command_line import answer, known_to_commands
from tests.support.streams.long_form import LONG_FORM, only_in_long_form
from tests.support.streams.pipelines import Pipeline
from tests.support.streams.windows import (
    Sensors,
    add_partition,
    assert_windows,
    compact,
    delete_records,
    iso,
    refused,
    sensors_pipeline,
    set_topic,
)
from tests.support.tables.foreign_hands import rewrite_rows, take_back

import transforms
from lakebound.errors import LakeboundError
from lakebound.inspection.late import late_report
from lakebound.inspection.proof.collect import prove
from lakebound.inspection.proof.windows import ComparedWindows
from lakebound.landing.topic_check import look_at_target_topics
from lakebound.ledger import far_ahead
from lakebound.ledger import windows as ledger
from lakebound.local.broker import Broker
from lakebound.tables.table import open_table
from lakebound_spark.batch import event_times
from lakebound_spark.batch.targets import Target
from lakebound_spark.check.closed_windows import compare_tables
from lakebound_spark.stream import application, window_query
from lakebound_spark.stream.stop_signal import StopSignal

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]


class CutError(LakeboundError):
    """A test's."""

    passes = True


class Running:
    """Runs applications of a pipeline in this process, one after the other."""

    def __init__(self, session: SparkSession, pipeline: Pipeline) -> None:
        self.session = session
        self.pipeline = replace(pipeline, spec=pipeline.spec.model_copy(update={"freshness": "available_now"}))

    def wait(self) -> SparkSession:
        """Return the session, as ``SessionStart`` does."""
        SparkSession._get_j_spark_session_class(self.session._jvm).setActiveSession(self.session._jsparkSession)
        return self.session

    def run(self) -> Any:
        """Land everything that there is, and return the outcome."""
        return application.Application(self.pipeline.run_spec(), self, StopSignal()).run()  # type: ignore[arg-type]

    def compared(self) -> dict[str, ComparedWindows]:
        """Return what a deep proof finds of the rows."""
        spec = self.pipeline.spec
        return compare_tables(self.session, self.pipeline.run_spec(), [table.id for table in spec.tables])

    def rows(self) -> list[int]:
        """Return how many rows each table has."""
        return [self.pipeline.read(table).num_rows for table in self.pipeline.spec.tables]


class Starter(Protocol):
    """Makes a pipeline of windows with a topic of its own, and what sends to it."""

    def __call__(self, transform: str = "count_in_windows") -> tuple[Running, Sensors]: ...


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transforms, "__path__", [*transforms.__path__, str(Path(__file__).parents[1] / "support" / "streams")])
    monkeypatch.setattr(SparkSession, "stop", lambda self: None)
    monkeypatch.setattr(application, "obey_signals", lambda ask: None)


@pytest.fixture
def start(in_process: None, session: SparkSession, tmp_path: Path, broker: Broker, topic: TopicMaker) -> Starter:
    def make(transform: str = "count_in_windows") -> tuple[Running, Sensors]:
        pipeline = sensors_pipeline(tmp_path, broker, topic("windows", 2), transform)
        return Running(session, pipeline), Sensors(broker.bootstrap_servers, pipeline.spec.topics[0])

    return make


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """Begin to fail each so many-th commit of a batch: a third of them before the commit, the others after it."""

    def begin(every: int) -> list[str]:
        cuts: list[str] = []
        numbers, commit = itertools.count(1), Target.commit

        def cutting(self: Target, *args: Any, **more: Any) -> Any:
            if more.get("kind") is not None or next(numbers) % every:
                return commit(self, *args, **more)
            where = ("before", "after", "after")[len(cuts) % 3]
            if where == "after":
                commit(self, *args, **more)
            cuts.append(f"{where} {self.id}")
            raise CutError(cuts[-1])

        monkeypatch.setattr(Target, "commit", cutting)
        return cuts

    return begin


@pytest.fixture
def rebuilt(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many offsets each start has read again."""
    found, rebuild = list[int](), window_query.WindowStream._rebuild

    def counted(self: Any, windows: Any, checkpoint: Path) -> bool:
        found.append(windows.position.rebuilt_offsets if windows.position.has_state else 0)
        return rebuild(self, windows, checkpoint)

    monkeypatch.setattr(window_query.WindowStream, "_rebuild", counted)
    return found


@pytest.mark.parametrize(
    ("transform", "size"),
    [
        ("count_in_windows", 5),
        pytest.param("count_in_sliding_windows", 10, marks=only_in_long_form),
    ],
)
def test_cut_at_commits_every_window_lands_once(
    transform: str,
    size: int,
    start: Starter,
    cut: Callable[[int], list[str]],
    rebuilt: list[int],
) -> None:
    running, sensors = start(transform)
    sensors.send(200)
    sensors.send_far()
    sensors.send_one(-60_000)
    assert running.run().verdict == "completed"
    cuts = cut(3)
    for _ in range(6 if LONG_FORM else 1):
        sensors.send(300)
        assert running.run().verdict == "completed"
    until_ms = sensors.close()
    assert running.run().verdict == "completed"
    assert len(cuts) >= 3 and sum(map(bool, rebuilt)) >= 4, (cuts, rebuilt)
    assert_windows(running.pipeline, sensors, until_ms, size, 5)
    proof = prove(running.pipeline.spec, running.pipeline.places, deep=True)
    assert proof.ok, [(table.table, table.problems) for table in proof.tables]
    assert any("not checked" in note for table in proof.tables for note in table.notes)


def test_closed_windows_are_computed_again_and_a_row_that_somebody_altered_is_told(
    start: Starter, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, sensors = start("count_in_sliding_windows")
    sensors.send(300)
    until_ms = sensors.close()
    assert running.run().verdict == "completed"
    assert_windows(running.pipeline, sensors, until_ms, 10, 5)
    assert_told_late(running.pipeline, sensors, 10, 5)
    [rows] = set(running.rows())
    for one in running.compared().values():
        assert (one.rows, one.computed, one.missing, one.surplus) == (rows, rows, 0, 0), one
    delete_records(broker, sensors.topic, {0: 75, 1: 75})
    for one in running.compared().values():
        assert one.after_ms is not None and 0 < one.computed < rows, one
        assert (one.rows, one.missing, one.surplus) == (one.computed, 0, 0), one
    for table in running.pipeline.spec.tables:
        rewrite_rows(table, running.pipeline.places, one_more_in_the_newest_window)
    for one in running.compared().values():
        assert (one.rows, one.missing, one.surplus) == (one.computed, 1, 1), one
        missing, surplus = one.examples
        assert missing.startswith("missing from the table: window=") and surplus.startswith("only in the table: window="), one
    if LONG_FORM:  # a Spark of its own
        known_to_commands(running.pipeline, monkeypatch, tmp_path / "yaml")
        proof = answer("prove", "events", "--deep", code=1)
        told = [one["problems"][-1] for one in proof["tables"] if one["role"] == "target"]
        assert len(told) == 2 and all("1 rows that Kafka's records give are not in the table" in text for text in told), proof
    delete_records(broker, sensors.topic, sensors.ends())
    assert {one.not_compared for one in running.compared().values()} == {"Kafka no longer has all records of any closed window"}


def one_more_in_the_newest_window(rows: list[dict[str, Any]]) -> None:
    max(rows, key=lambda row: (row["window"]["end"], row["sensor"]))["readings"] += 1


def assert_told_late(pipeline: Pipeline, sensors: Sensors, size: int, slide: int) -> None:
    """Check what is told of late records with what the sent readings and the quarantine say."""
    reasons, watermarks = refused(pipeline)
    by_place = {(one.partition, one.offset): one for one in sensors.sent}
    late_ms = {place: closed - by_place[place].window_ends_ms(size, slide)[0] for place, closed in watermarks.items()}
    found = late_report(pipeline.spec, pipeline.places, None)
    assert late_ms and found.unread == 0
    assert found.records == len(late_ms) and found.longer[-1].counted == len(late_ms)
    assert {one.reason for one in found.late} == {reasons[place] for place in late_ms}
    for one in found.late:
        own = [value for place, value in late_ms.items() if reasons[place] == one.reason]
        assert (one.window_ms, one.records, one.max_ms) == (1000 * size, len(own), max(own))
    for longer in found.longer:
        assert longer.counted == sum(value < longer.later_ms for value in late_ms.values())


def test_an_idle_partition_whose_newest_record_is_far_behind_the_others_still_decides_the_watermark(
    start: Starter, rebuilt: list[int]
) -> None:
    running, sensors = start()
    sensors.send(100)
    newest_ms = sensors.now_ms + 8_000
    sensors.send_one(newest_ms, partition=0)  # from here on, partition 0 is idle
    assert running.run().verdict == "completed"
    for step in range(3):
        for back_ms in range(9_000, 0, -500):
            sensors.send_one(newest_ms - back_ms + 500 * step, partition=1)
        assert running.run().verdict == "completed"
    assert all(rebuilt[1:]), rebuilt
    until_ms = sensors.close()
    assert running.run().verdict == "completed"
    assert_windows(running.pipeline, sensors, until_ms)


def test_a_record_that_is_far_ahead_by_both_of_its_times_closes_no_window_also_when_the_clock_has_gone_on(
    start: Starter, broker: Broker, rebuilt: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    running, sensors = start()
    set_topic(broker, sensors.topic, {"message.timestamp.after.max.ms": str(2**62)})
    sensors.send(200)
    in_a_minute_ms = int(time.time() * 1000) + 200_000
    for at_ms in (in_a_minute_ms, sensors.far_ms):
        sensors.send_one(at_ms, sent_ms=at_ms)
    sensors.send(100)
    assert running.run().verdict == "completed"
    assert {reason for reason in refused(running.pipeline)[0].values() if not reason.startswith("late")} == {"far_ahead"}
    # A start in some minutes, with another rule: what was far ahead is so still.
    monkeypatch.setattr(far_ahead, "CLOCK_SECONDS", 3600)
    monkeypatch.setattr(event_times, "CLOCK_SECONDS", 3600)
    assert running.pipeline.spec.state is not None
    state = running.pipeline.spec.state.model_copy(update={"max_ahead": "12h"})
    other = running.pipeline.spec.model_copy(update={"state": state})
    running = Running(running.session, replace(running.pipeline, spec=other))
    sensors.send(100)
    assert running.run().verdict == "completed"
    assert rebuilt[-1] > 0
    until_ms = sensors.close()
    assert running.run().verdict == "completed"
    reasons, _ = refused(running.pipeline)
    assert sorted(reasons.values()).count("far_ahead") == 2
    assert_windows(running.pipeline, sensors, until_ms)
    for one in running.compared().values():
        assert (one.missing, one.surplus) == (0, 0) and one.computed, one


def test_open_windows_whose_records_kafka_has_deleted_are_named_and_nothing_lands(start: Starter, broker: Broker) -> None:
    running, sensors = start()
    sensors.send(200)
    assert running.run().verdict == "completed"
    before = running.rows()
    ends = sensors.ends()
    delete_records(broker, sensors.topic, {0: ends[0] - 1})
    sensors.send(50)
    outcome = running.run()
    assert (outcome.verdict, outcome.error_class) == ("refused", "WindowsGoneError")
    assert "partition 0" in outcome.reason and running.rows() == before


def test_a_value_on_which_the_aggregation_raises_is_a_refusal_that_names_its_offsets(start: Starter) -> None:
    running, sensors = start()
    sensors.send(60)
    assert running.run().verdict == "completed"
    before = running.rows()
    for _ in range(2):
        sensors.send_body({"id": 2**63 - 1, "sensor": "s", "at": iso(sensors.now_ms), "value": 1}, partition=1)
    outcome = running.run()
    assert (outcome.verdict, outcome.error_class) == ("refused", "WindowValueError")
    assert "of partition 1 from 30" in outcome.reason and "OVERFLOW" in outcome.reason
    assert running.rows() == before


def test_a_topic_that_kafka_compacts_is_refused_at_the_start_and_by_the_check(start: Starter, broker: Broker) -> None:
    running, sensors = start()
    sensors.send(60)
    assert running.run().verdict == "completed"
    before = running.rows()
    compact(broker, sensors.topic)
    outcome = running.run()
    assert (outcome.verdict, outcome.error_class) == ("refused", "WindowsCompactedError")
    assert running.rows() == before
    [problem] = look_at_target_topics(running.pipeline.spec)
    assert problem.keys == ("topics",) and "is compacted" in problem.what
    assert {one.not_compared for one in running.compared().values()} == {
        f"Kafka compacts {sensors.topic}, so it does not have all records"
    }


def test_another_aggregation_does_not_go_on_with_these_windows(start: Starter) -> None:
    running, sensors = start()
    sensors.send(60)
    assert running.run().verdict == "completed"
    other = running.pipeline.spec.model_copy(update={"transform": "transforms.landing_transforms.count_in_sliding_windows"})
    outcome = Running(running.session, replace(running.pipeline, spec=other)).run()
    assert (outcome.verdict, outcome.error_class) == ("refused", "WindowsMismatchError")


def test_a_change_above_the_aggregation_goes_on_and_windows_closed_since_are_compared(start: Starter) -> None:
    running, sensors = start()
    sensors.send(200)
    assert running.run().verdict == "completed"
    other = running.pipeline.spec.model_copy(update={"transform": "transforms.landing_transforms.count_more_in_windows"})
    running = Running(running.session, replace(running.pipeline, spec=other))
    told = {one.not_compared for one in running.compared().values()}
    assert told == {"the code on disk has landed no windows yet: the rows are those of the code before it"}
    sensors.send(200)
    assert running.run().verdict == "completed"
    [rows] = set(running.rows())
    for one in running.compared().values():
        assert one.after_ms is not None and 0 < one.computed < rows, one
        assert (one.rows, one.missing, one.surplus) == (one.computed, 0, 0), one


@pytest.mark.parametrize("watermark", ["25s", pytest.param("3s", marks=only_in_long_form)])
def test_another_watermark_in_the_yaml_goes_on_with_the_open_windows(
    watermark: str, start: Starter, rebuilt: list[int]
) -> None:
    running, sensors = start()
    sensors.send(200)
    assert running.run().verdict == "completed"
    assert running.pipeline.spec.state is not None
    state = running.pipeline.spec.state.model_copy(update={"watermark": watermark})
    other = replace(running.pipeline, spec=running.pipeline.spec.model_copy(update={"state": state}))
    running = Running(running.session, other)
    sensors.send(200)
    until_ms = sensors.close()
    assert running.run().verdict == "completed"
    assert all(rebuilt[1:]), rebuilt
    assert_windows(running.pipeline, sensors, until_ms)


def test_a_partition_that_comes_later_belongs_to_the_windows(start: Starter, broker: Broker, rebuilt: list[int]) -> None:
    running, sensors = start()
    sensors.send(60)
    assert running.run().verdict == "completed"
    add_partition(broker, sensors.topic, 3)
    sensors.know_partitions(3)
    sensors.send(90)
    assert running.run().verdict == "completed"
    sensors.send(30)
    assert running.run().verdict == "completed"
    assert all(rebuilt[1:])
    until_ms = sensors.close()
    assert running.run().verdict == "completed"
    assert_windows(running.pipeline, sensors, until_ms)


def test_a_table_that_was_rolled_back_by_one_batch_gets_it_again_and_by_more_is_refused(start: Starter) -> None:
    running, sensors = start()
    sensors.send(300)
    assert running.run().verdict == "completed"
    [iceberg] = [one for one in running.pipeline.spec.tables if one.format == "iceberg"]
    at = running.pipeline.places
    serials = {one.version: one.entry.windows.serial for one in open_table(iceberg, at).entries() if one.entry.windows}
    newest = max(serials.values())
    back = {serial: version for version, serial in serials.items()}
    take_back(iceberg, at, back[newest - 1])
    assert running.run().verdict == "completed"
    until_ms = sensors.close()
    assert running.run().verdict == "completed"
    assert_windows(running.pipeline, sensors, until_ms)
    take_back(iceberg, at, back[newest - 2])
    outcome = running.run()
    assert (outcome.verdict, outcome.error_class) == ("refused", "WindowsMismatchError")


def test_windows_that_were_rebuilt_otherwise_are_not_landed(start: Starter, monkeypatch: pytest.MonkeyPatch) -> None:
    running, sensors = start()
    sensors.send(200)
    assert running.run().verdict == "completed"
    before = running.rows()
    position = ledger.WindowPosition.next_watermark_ms
    monkeypatch.setattr(ledger.WindowPosition, "next_watermark_ms", lambda self, delay_ms: position(self, delay_ms) + 1)
    sensors.send(200)
    outcome = running.run()
    assert (outcome.verdict, outcome.error_class) == ("refused", "WatermarkMismatchError")
    assert running.rows() == before
