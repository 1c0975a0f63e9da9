"""Long epochs come after some short ones, in a query of their own that ends by itself."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakebound.control.progress import EndVerdict
from lakebound_spark.real_time.warm_up import Stretch, stretches
from lakebound_spark.stream import real_time_query
from lakebound_spark.stream.real_time_query import RealTimeStream
from lakebound_spark.stream.stop_signal import StopSignal

SHORT_EPOCHS = 6
PER_EPOCH = 10
FAILED = ValueError("a broker said no")


@pytest.mark.parametrize("seconds", [5, 30, 59])
def test_short_epochs_come_alone(seconds: int) -> None:
    assert stretches(seconds) == (Stretch(seconds * 1000),)


@pytest.mark.parametrize("seconds", [60, 300, 3600])
def test_before_long_epochs_short_ones_are_run(seconds: int) -> None:
    warm_up, wanted = stretches(seconds)
    assert wanted == Stretch(seconds * 1000)
    assert warm_up.epoch_ms < 5000
    assert [warm_up.is_over(ended) for ended in range(7)] == [False] * 5 + [True, True]
    assert not any(wanted.is_over(ended) for ended in range(7))


class FakeQuery:
    """A query of which another epoch has ended each time when it is looked at; it dies after some."""

    def __init__(self, start: int, dies_after: int | None = None) -> None:
        self.start, self.dies_after, self.ended, self.isActive = start, dies_after, 0, True
        self.is_stopped = False
        self._jsq = self

    def recentProgress(self) -> list[Any]:
        texts = {number: self._progress(number) for number in range(self.ended)}
        return [SimpleNamespace(batchId=lambda n=n: n, json=lambda text=text: text) for n, text in texts.items()]

    def _progress(self, number: int) -> str:
        end = {"events": {"0": self.start + (number + 1) * PER_EPOCH}}
        return json.dumps({"batchId": number, "durationMs": {"triggerExecution": 1000}, "sources": [{"endOffset": end}]})

    def end_epoch(self) -> int:
        if self.ended == self.dies_after:
            self.isActive = False
        elif self.isActive and not self.is_stopped:
            self.ended += 1
        return self.ended

    def exception(self) -> Exception | None:
        return None if self.isActive else FAILED

    def stop(self) -> None:
        """Nothing is left behind."""


class Scene:
    """A stream with epochs of five minutes over queries that are none of Spark's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stop, self.queries, self.lengths_ms = StopSignal(), list[FakeQuery](), list[int]()
        self.dies_after: int | None = None
        objectives = SimpleNamespace(quarantine=None)
        limits = SimpleNamespace(stop_timeout_seconds=60)
        spec = SimpleNamespace(real_time=SimpleNamespace(epoch_seconds=300), limits=limits, objectives=objectives)
        nothing = SimpleNamespace(
            wait_no_more=lambda state: None, begin=lambda name, start: None, recover=lambda name: None, put=lambda *of: None
        )
        opened = SimpleNamespace(targets=[], topic_ids={"events": "id"}, rows_from=lambda start: start)
        facts = SimpleNamespace(topic_ids=lambda topics: {"events": "id"})
        monkeypatch.setattr(real_time_query, "window_seconds", lambda objectives: 60.0)
        monkeypatch.setattr(real_time_query, "ended_epochs", FakeQuery.end_epoch)
        monkeypatch.setattr(real_time_query, "stop_after_epoch", self._stopped)
        monkeypatch.setattr(real_time_query, "_POLL_SECONDS", 0)
        of: Any = SimpleNamespace(spec=spec)
        made: Any = (of, None, opened, facts, nothing, nothing, self.stop, None)
        self.stream = RealTimeStream(*made)
        monkeypatch.setattr(self.stream, "_started", self._started)

    def _started(self, start: dict[str, dict[int, int]], stretch: Stretch, checkpoint: Path) -> FakeQuery:
        self.lengths_ms.append(stretch.epoch_ms)
        self.queries.append(FakeQuery(start["events"][0], None if self.queries else self.dies_after))
        if len(self.queries) == 2:
            self.stop.set("stopped", "the test has seen enough")
        return self.queries[-1]

    def _stopped(self, query: FakeQuery, limit_seconds: float) -> bool:
        before = query.ended
        has_ended = query.end_epoch() > before
        query.is_stopped = True
        return has_ended

    def run(self, folder: Path) -> None:
        self.stream.run({"events": {0: 7}}, folder / "checkpoint")


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_the_long_epochs_begin_where_the_short_ones_have_ended(scene: Scene, tmp_path: Path) -> None:
    scene.run(tmp_path)
    assert scene.lengths_ms == [1000, 300_000]
    assert [query.ended for query in scene.queries] == [SHORT_EPOCHS, 1]
    assert scene.queries[1].start == 7 + SHORT_EPOCHS * PER_EPOCH


def test_short_epochs_do_not_count_as_progress(scene: Scene, tmp_path: Path) -> None:
    scene.run(tmp_path)
    assert scene.stream.landed_batches == 1


@pytest.mark.parametrize("dies_after", range(SHORT_EPOCHS))
def test_a_failure_among_the_short_epochs_ends_the_attempt(scene: Scene, tmp_path: Path, dies_after: int) -> None:
    scene.dies_after = dies_after
    with pytest.raises(ValueError, match="a broker said no"):
        scene.run(tmp_path)
    assert len(scene.queries) == 1


@pytest.mark.parametrize("verdict", ["stopped", "superseded"])
def test_a_stop_among_the_short_epochs_starts_no_long_one(scene: Scene, tmp_path: Path, verdict: EndVerdict) -> None:
    scene.stop.set(verdict, "asked before the first epoch has ended")
    scene.run(tmp_path)
    assert scene.lengths_ms == [1000]
