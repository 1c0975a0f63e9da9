"""Machines that share nothing but a bucket: one dies, another takes over, a third commands; the store fails and goes away.

In the long form alone: in the short one ``tests/local/control/test_machines.py`` does so with an application in small, which
has the real lease, signs of life and commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.support.kafka.journal import Journal
from tests.support.kafka.makers import TopicMaker
from tests.support.kafka.producing import JournalingProducer, Load
from tests.support.s3.faults import Fault, slow_down
from tests.support.s3.running import S3Server
from tests.support.state.machines import Machine
from tests.support.state.shared import tell_state
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.pipelines import Pipeline, assert_exactly_once, make_pipeline
from tests.support.tables.stored import stored
from tests.support.waiting import wait_until

from lakebound.control.lease import read_lease
from lakebound.control.progress import read_progress
from lakebound.local.broker import Broker

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800), only_in_long_form]

PER_SECOND = 200
TTL_SECONDS = 6.0
START_SECONDS = 240.0
STATE = "state/pipelines/*"


@pytest.fixture
def pipeline(
    tmp_path: Path, broker: Broker, topic: TopicMaker, s3_server: S3Server, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> Pipeline:
    """A pipeline whose tables and state are in a bucket, as this process sees it: the machine of who is on call."""
    made = make_pipeline(tmp_path, broker.bootstrap_servers, topic("shared"), formats=("delta",), lane="direct")
    made = stored(made.with_limits(lease_ttl_seconds=TTL_SECONDS), s3_server, s3_bucket)
    for name, value in tell_state(s3_server, s3_bucket, made.settings.pipelines).items():
        monkeypatch.setenv(name, value)
    body = made.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    (made.settings.pipelines / "events.yaml").write_text(yaml.safe_dump(body))
    return replace(made, settings=replace(made.settings, home=tmp_path / "on-call"))


@pytest.fixture
def machines(pipeline: Pipeline, tmp_path: Path) -> Iterator[list[Machine]]:
    """Three machines."""
    settings = pipeline.settings.environment()
    made = [Machine(name, tmp_path, settings) for name in ("first", "second", "third")]
    yield made
    for machine in made:
        machine.die()


def test_a_machine_dies_and_another_takes_over(pipeline: Pipeline, machines: list[Machine], s3_server: S3Server) -> None:
    first, second, third = machines
    name, journal = pipeline.spec.topics[0], Journal()
    try:
        with Load(JournalingProducer(pipeline.settings.kafka, journal), name, PER_SECOND, None):
            first.run("run", "events", "--detach")
            await_landing(pipeline, 1)
            assert third.status("events")["alive"]
            first.die()
            # Who watches sees the silence; whoever starts next need not watch it anew.
            wait_until(lambda: not third.status("events")["alive"], START_SECONDS, "the end of the dead machine's lease")
            second.run("run", "events", "--detach")
            await_landing(pipeline, 2)
            assert [one["kind"] for one in third.ask("incidents", "events")] == ["unclean_end"]
            pass_through_faults(pipeline, s3_server)
            be_without_state(pipeline, second, third, s3_server)
            assert third.ask("doctor", "events", code=0)
            assert "running" in third.run("status", "events")
        wait_until(lambda: has_landed(pipeline, journal), START_SECONDS, "all that was sent")
        stopped = third.ask("control", "events", "stop", "--reason", "the test is over")
        assert stopped["state"] == "met"
        # It is met by the application's last word, which its Python says before its JVM ends.
        wait_until(lambda: not second.processes(), 30, "the end of the application's processes")
    except BaseException:
        print(first.log_tail(), second.log_tail(), sep="\n--- second\n")
        raise
    assert_exactly_once(pipeline, journal)
    assert not (pipeline.settings.home / "pipelines").exists(), "what is shared was also written here"


def pass_through_faults(pipeline: Pipeline, s3_server: S3Server) -> None:
    """Let requests for state fail in every way while the application lands."""
    broken = [
        Fault("disconnect", methods=("PUT",), key=STATE, after_effect=True, count=3),
        Fault("status", methods=("PUT",), key=STATE, after_effect=True, skip=4, count=3),
        slow_down(methods=("PUT", "GET"), key=STATE, skip=9, count=5),
        Fault("half body", methods=("GET",), key=STATE, skip=3, count=3),
    ]
    numbers = [s3_server.faults.add(fault) for fault in broken]
    wait_until(lambda: all(map(s3_server.faults.hits, numbers)), START_SECONDS, "the faults")
    s3_server.faults.clear()
    await_landing(pipeline, 2)


def be_without_state(pipeline: Pipeline, second: Machine, third: Machine, s3_server: S3Server) -> None:
    """Take the store away for a minute, which is longer than the lease lasts: the application ends, and the next one lands."""
    s3_server.faults.go_away(60)
    wait_until(lambda: not second.processes(), 240, "the end of an application without its state")
    s3_server.faults.come_back()
    wait_until(lambda: not third.status("events")["alive"], START_SECONDS, "the end of its lease")
    second.run("run", "events", "--detach")
    await_landing(pipeline, 3)


def await_landing(pipeline: Pipeline, epoch: int) -> None:
    """Return when the application of that epoch, or a later one, lands."""
    began = read_progress(pipeline.control)

    def lands() -> bool:
        lease, progress = read_lease(pipeline.control), read_progress(pipeline.control)
        if lease is None or progress is None or lease.epoch < epoch or progress.epoch != lease.epoch:
            return False
        return progress.records > (began.records if began is not None and began.app_id == progress.app_id else 0)

    wait_until(lands, START_SECONDS, f"landing in epoch {epoch}", poll_seconds=0.5)


def has_landed(pipeline: Pipeline, journal: Journal) -> bool:
    """Whether everything that was sent is dealt with."""
    progress = read_progress(pipeline.control)
    marks = {} if progress is None else progress.high_water_marks
    return all(marks.get(topic, {}).get(p, 0) >= end for topic, ends in journal.ends().items() for p, end in ends.items())
