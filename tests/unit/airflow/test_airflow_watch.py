from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
import yaml
from airflow._shared.module_loading import import_string
from tests.support.streams.stand_ins import ORDERS, orders, settings_fixture  # noqa: F401

from lakebound.control.desired import change_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, TableProgress, write_progress
from lakebound.control.submission import Submission, write_submission
from lakebound.control.supervision import KafkaView
from lakebound.errors import BrokerUnavailableError
from lakebound.ledger.topics import TopicFacts
from lakebound.settings import Settings
from lakebound_airflow.triggers import settled, stream, stream_watch
from lakebound_airflow.triggers.commits import TableCommitsTrigger
from lakebound_airflow.triggers.control import WishTrigger
from lakebound_airflow.triggers.stream_watch import StreamWatch


class FakeKafka:
    """Kafka's latest offsets, and whether it answers."""

    latest = 10
    answers = True

    def __init__(self, *_: Any, **__: Any) -> None:
        return

    def topics(self, topics: tuple[str, ...]) -> dict[str, TopicFacts]:
        if not FakeKafka.answers:
            raise BrokerUnavailableError("127.0.0.1:1", "refused")
        return {topic: TopicFacts("id", {0: 0}, {0: FakeKafka.latest}) for topic in topics}


@pytest.fixture
def watch(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> StreamWatch:
    monkeypatch.setattr(stream_watch, "KafkaFacts", FakeKafka)
    monkeypatch.setattr(FakeKafka, "answers", True)
    return StreamWatch(orders(settings).control, "app-1")


def progress(control: ControlFolder, mark: int = 10, commits: int = 0, version: str = "0", updated_at: float = 0) -> None:
    table = TableProgress(version=version, committed_at=time.time(), commits=commits, rows=commits * 5)
    write_progress(
        control,
        Progress(
            pipeline="orders",
            app_id="app-1",
            state="running",
            started_at=0,
            updated_at=updated_at or time.time(),
            high_water_marks={"orders": {0: mark}},
            tables={"delta:lake.orders": table},
        ),
    )


def test_kafka_that_grows_while_nothing_is_committed_is_seen_from_outside(watch: StreamWatch) -> None:
    progress(watch.control, mark=4)
    watch.look_outside()
    assert watch.kafka.waiting_records == 6
    since = watch.kafka.behind_since
    assert since is not None
    watch.look_outside()
    assert watch.kafka.behind_since == since
    submission = Submission(app_id="app-1", submitted_at=since)
    progress(watch.control, mark=4, updated_at=since + 61)
    assert watch._stalled(submission, since + 61) is None
    verdict = watch._stalled(submission, since + 62)
    assert verdict is not None
    assert verdict["kind"] == "not_committing"
    progress(watch.control, mark=10)
    watch.look_outside()
    assert watch.kafka.behind_since is None


def test_in_shared_state_only_the_watchers_own_clock_counts(watch: StreamWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    behind, now = Submission(app_id="app-1", submitted_at=1_000.0), 10_000.0
    never_started = watch._stalled(behind, now)
    assert never_started is not None and never_started["kind"] == "never_started"
    monkeypatch.setattr(ControlFolder, "is_shared", True)
    assert watch._stalled(behind, now) is None
    assert watch._stalled(behind, now + 140) is None
    again = watch._stalled(behind, now + 600)
    assert again is not None and again["kind"] == "never_started"
    progress(watch.control, updated_at=1_000.0)
    assert watch._stalled(behind, now + 600) is None
    assert watch._stalled(behind, now + 659) is None
    silent = watch._stalled(behind, now + 661)
    assert silent is not None and silent["kind"] == "silent"


def test_a_kafka_that_does_not_answer_is_no_reason_for_a_verdict(
    watch: StreamWatch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    progress(watch.control, mark=4)
    watch.look_outside()
    monkeypatch.setattr(FakeKafka, "answers", False)
    watch.look_outside()
    watch.look_outside()
    assert watch.kafka.behind_since is None
    assert capsys.readouterr().out.count("the watcher could not read Kafka") == 1, "said once"


@pytest.mark.parametrize("error", [PermissionError("the store refuses it"), ValueError("torn"), OSError("the disk")])
@pytest.mark.parametrize("asked", ["spec_of", "readable_progress"])
def test_no_error_ends_the_looks_outside(
    watch: StreamWatch, settings: Settings, monkeypatch: pytest.MonkeyPatch, asked: str, error: Exception
) -> None:
    progress(watch.control, mark=4)
    monkeypatch.setattr(stream, "OUTSIDE_LOOK_SECONDS", 0.01)
    ask, asked_times = getattr(stream_watch, asked), list[int]()

    def once_refused(*arguments: Any) -> Any:
        asked_times.append(1)
        if len(asked_times) == 2:
            raise error
        return ask(*arguments)

    async def look_on() -> None:
        trigger = stream.StreamTrigger("orders", str(settings.home), "app-1")
        looking = asyncio.create_task(trigger._look_outside(watch))
        async with asyncio.timeout(30):
            while len(asked_times) < 4 and not looking.done():
                await asyncio.sleep(0.01)
        assert not looking.done(), looking
        looking.cancel()

    monkeypatch.setattr(stream_watch, asked, once_refused)
    asyncio.run(look_on())
    assert watch.kafka.waiting_records == 6, "it is seen again"
    asked_times[:] = [1]
    watch.look_outside()
    assert watch.kafka == KafkaView(), "what is not known is no reason for a verdict"


def test_a_changed_yaml_shows_as_outdated_and_a_broken_one_keeps_the_watch_going(
    watch: StreamWatch, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    run_spec = orders(settings)
    write_submission(watch.control, Submission(app_id="app-1", source_hash=run_spec.source_hash))
    watch.look_outside()
    assert "outdated" not in capsys.readouterr().out
    file = settings.pipelines / "orders.yaml"
    file.write_text(yaml.safe_dump({**ORDERS, "description": "changed"}))
    watch.look_outside()
    assert "outdated: app-1" in capsys.readouterr().out
    file.write_text("pipeline: orders\n")
    watch.look_outside()
    assert "orders.yaml:1" in capsys.readouterr().out


def test_the_commit_watcher_announces_what_comes_after_it_started(settings: Settings) -> None:
    control = orders(settings).control
    progress(control, commits=7, version="7")

    async def watch_commits() -> dict[str, Any]:
        classpath, arguments = TableCommitsTrigger("orders", "delta:lake.orders", 3, 60.0).serialize()
        events = import_string(classpath)(**arguments).run()
        first = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.3)
        progress(control, commits=9, version="9")
        await asyncio.sleep(1.5)
        assert not first.done()
        progress(control, commits=12, version="12")
        async with asyncio.timeout(10):
            return (await first).payload  # type: ignore[no-any-return]

    payload = asyncio.run(watch_commits())
    assert (payload["version"], payload["commits"], payload["rows"]) == ("12", 5, 25)
    assert (payload["pipeline"], payload["table"]) == ("orders", "delta:lake.orders")


def test_the_control_trigger_says_when_it_is_so_and_when_it_is_late(settings: Settings) -> None:
    control = orders(settings).control
    desired = change_desired(control, "stopped", reason="test")

    def event(awaited: str, wait_seconds: float) -> dict[str, str]:
        trigger = WishTrigger("orders", str(settings.home), awaited, "stopped", desired.generation, wait_seconds)
        classpath, arguments = trigger.serialize()
        return asyncio.run(import_string(classpath)(**arguments).wait())  # type: ignore[no-any-return]

    assert event("stopped", 5)["event"] == "met"
    late = event("running", 0.1)
    assert (late["event"], "is not paused" in late["reason"]) == ("late", True)


def test_what_is_so_at_once_is_said_when_the_scheduler_knows_that_the_task_deferred(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "7")
    assert settled.settle_seconds() == 12.0
    monkeypatch.setattr(settled, "settle_seconds", lambda: 0.5)
    desired = change_desired(orders(settings).control, "stopped", reason="test")
    trigger = WishTrigger("orders", str(settings.home), "stopped", "stopped", desired.generation, 60.0)

    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    started = time.monotonic()
    (event,) = asyncio.run(events())
    assert event["event"] == "met"
    assert time.monotonic() - started >= 0.5
