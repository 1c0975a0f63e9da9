from __future__ import annotations

import asyncio
import errno
import time
from collections.abc import Callable
from pathlib import Path
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
from lakebound.errors import BrokerUnavailableError, MissingSecretError
from lakebound.ledger.topics import TopicFacts
from lakebound.settings import Settings
from lakebound.storage.objects import ObjectStoreRefusedError
from lakebound_airflow.assets import validation_asset
from lakebound_airflow.triggers import asking, settled, stream, stream_watch
from lakebound_airflow.triggers.asking import StateUnreadableError, ask_state
from lakebound_airflow.triggers.commits import TableCommitsTrigger
from lakebound_airflow.triggers.control import RequestTrigger
from lakebound_airflow.triggers.stream import ReplaceTrigger, StreamTrigger, WantedTrigger
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


REFUSED = ObjectStoreRefusedError("state/desired.json: the store refuses it: ExpiredToken: Generic S3 error")


@pytest.mark.parametrize("error", [REFUSED, ValueError("torn"), OSError("the disk"), MissingSecretError("store.key", "KEY")])
def test_state_that_cannot_be_read_for_a_moment_is_asked_again_and_told_once(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    monkeypatch.setattr(asking, "_AGAIN_SECONDS", 0.01)
    # An object store's error says how long the request took.
    texts = [f"{error} (GET in {milliseconds}ms)" for milliseconds in (3, 5.5)]
    errors = [type(error)(text) if isinstance(error, ObjectStoreRefusedError) else error for text in texts]
    control, answers = orders(settings).control, iter([*errors, "read"])

    def ask(what: str) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return f"{what}: {answer}"

    assert asyncio.run(ask_state(control, ask, "the lease")) == "the lease: read"
    said = capsys.readouterr().out
    assert said.count("the state cannot be read") == 1 and str(error) in said
    assert said.count("the state can be read again") == 1


@pytest.mark.parametrize(
    ("error", "page"), [(REFUSED, "state-away"), (ValueError("torn"), "control-files"), (OSError("the disk"), "state-away")]
)
def test_state_that_stays_unreadable_ends_the_wait_with_what_to_do(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception, page: str
) -> None:
    monkeypatch.setattr(asking, "_AGAIN_SECONDS", 0.01)
    control, asked = orders(settings).control, list[int]()

    def ask() -> None:
        asked.append(1)
        raise error

    with pytest.raises(StateUnreadableError) as caught:
        asyncio.run(ask_state(control, ask, patience_seconds=0.1))
    said = str(caught.value)
    assert "pipeline 'orders': its state in " in said and str(error) in said and f"runbook {page};" in said
    assert len(asked) > 1


@pytest.mark.parametrize(
    ("error", "patience_seconds"),
    [(ConnectionError("away"), 0.0), (OSError(errno.EIO, "the disk"), 0.0), (REFUSED, None), (ValueError("torn"), None)],
)
def test_an_outage_and_a_watcher_know_no_end(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception, patience_seconds: float | None
) -> None:
    monkeypatch.setattr(asking, "_AGAIN_SECONDS", 0.01)
    control, asked = orders(settings).control, list[int]()

    def ask() -> int:
        asked.append(1)
        if len(asked) < 10:
            raise error
        return len(asked)

    assert asyncio.run(ask_state(control, ask, patience_seconds=patience_seconds)) == 10


def torn(file: Path) -> Callable[[], None]:
    """Leave half of a file, and return what writes it again."""
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])

    def mend() -> None:
        file.write_text(whole)

    return mend


@pytest.mark.parametrize("name", ["desired", "submission"])
def test_a_torn_file_keeps_every_trigger_waiting(settings: Settings, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(asking, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(stream_watch, "KafkaFacts", FakeKafka)
    control = orders(settings).control
    desired = change_desired(control, "running", reason="test")
    write_submission(control, Submission(app_id="app-1", pid=2**22 + 1, pid_started_at=1.0))
    home = str(settings.home)
    triggers = {
        "desired": [
            WantedTrigger("orders", home),
            RequestTrigger("orders", home, "stopped", "running", desired.generation, 0.0),
        ],
        "submission": [StreamTrigger("orders", home, "app-1"), ReplaceTrigger("orders", home, "app-1", 60.0)],
    }

    async def wait_for(trigger: Any, mend: Callable[[], None]) -> dict[str, str]:
        waiting = asyncio.create_task(trigger.wait())
        await asyncio.sleep(0.3)
        assert not waiting.done(), waiting
        mend()
        async with asyncio.timeout(20):
            return await waiting  # type: ignore[no-any-return]

    for trigger in triggers[name]:
        mend = torn(getattr(control, name))
        assert asyncio.run(wait_for(trigger, mend))["event"] in ("wanted", "met", "late", "ended", "replaced")


def test_a_torn_file_does_not_end_the_watcher_of_commits(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_AGAIN_SECONDS", 0.01)
    control = orders(settings).control
    progress(control, commits=7, version="7")
    mend = torn(control.progress)

    async def watch_commits() -> dict[str, Any]:
        first = asyncio.ensure_future(anext(TableCommitsTrigger("orders", "delta:lake.orders", 3, 60.0).run()))
        await asyncio.sleep(0.3)
        assert not first.done()
        mend()
        await asyncio.sleep(1.5)
        assert not first.done(), "what was there before is not announced"
        progress(control, commits=10, version="10")
        async with asyncio.timeout(10):
            return (await first).payload  # type: ignore[no-any-return]

    assert asyncio.run(watch_commits())["commits"] == 3


def test_a_watcher_for_validation_announces_what_landed_before_it_started(settings: Settings) -> None:
    progress(orders(settings).control, commits=7, version="7")
    (watcher,) = validation_asset("orders", "delta:lake.orders", every_seconds=0.0).watchers

    async def watch_commits() -> dict[str, Any]:
        classpath, arguments = watcher.trigger.serialize()
        async with asyncio.timeout(10):
            return (await anext(import_string(classpath)(**arguments).run())).payload  # type: ignore[no-any-return]

    event = asyncio.run(watch_commits())
    assert (event["commits"], event["version"]) == (7, "7")


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
        trigger = RequestTrigger("orders", str(settings.home), awaited, "stopped", desired.generation, wait_seconds)
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
    trigger = RequestTrigger("orders", str(settings.home), "stopped", "stopped", desired.generation, 60.0)

    async def events() -> list[Any]:
        return [event.payload async for event in trigger.run()]

    started = time.monotonic()
    (event,) = asyncio.run(events())
    assert event["event"] == "met"
    assert time.monotonic() - started >= 0.5
