"""The queries of one application: one that fails starts again or ends them all, and the board shows the one that is behind."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.errors import LakeboundError, LeaseLostError, RealTimeRefusedError, StoreUnavailableError
from lakebound.formats.registered import NewSchemasError
from lakebound.ledger.entry import TopicOffsets
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.connection import ConnectionSpec
from lakebound_spark.batch.targets import Target
from lakebound_spark.stream.repeated_query import QueriesTogether, RepeatedQuery
from lakebound_spark.stream.reporting import TargetsReport
from lakebound_spark.stream.signs import ProgressBoard
from lakebound_spark.stream.stop_signal import StopSignal

WAIT_SECONDS = 20.0
REFUSED = RealTimeRefusedError("orders", "a reason")


class FakeStream:
    """Raises one error per run, in turn, after others run; then it runs until it is asked to end, or ends by itself."""

    def __init__(self, stop: StopSignal, *errors: Exception, stays: bool = True, after: FakeStream | None = None) -> None:
        self.landed_batches = 0
        self.starts: list[tuple[NextOffsets, str]] = []
        self.running = Event()
        self._stop, self._errors, self._stays, self._after = stop, list(errors), stays, after

    def run(self, start: NextOffsets, checkpoint: Path) -> None:
        self.starts.append((start, checkpoint.name))
        if self._after is not None:
            assert self._after.running.wait(WAIT_SECONDS), "the other query has not started"
        if self._errors:
            raise self._errors.pop(0)
        self.running.set()
        assert not self._stays or self._stop.wait(WAIT_SECONDS), "nobody asked it to end"


@pytest.fixture
def stop() -> StopSignal:
    return StopSignal()


@pytest.fixture
def board(tmp_path: Path) -> ProgressBoard:
    spec = SimpleNamespace(pipeline="orders")
    run = SimpleNamespace(control=ControlFolder(tmp_path, "orders"), spec=spec, app_id="a", generation=1, source_hash="")
    return ProgressBoard(cast(Any, run), epoch=1)


class Queries:
    """Makes queries of streams, and runs them as an application does."""

    def __init__(self, board: ProgressBoard, stop: StopSignal, folder: Path) -> None:
        self._board, self._stop, self._folder = board, stop, folder
        self.reopening: list[Exception | None] = []
        """What each reading of the ledgers raises, the next one first."""
        self.kafka_is_there = True

    def run(self, **streams: FakeStream) -> None:
        queries = [self._query(name, stream) for name, stream in streams.items()]
        together = QueriesTogether(queries, cast(Any, SimpleNamespace(wait=lambda: None)), self._stop, lambda error: error)
        try:
            together.run({})
        finally:
            self.stuck = together.stuck

    def _query(self, name: str, stream: FakeStream) -> RepeatedQuery:
        return RepeatedQuery(
            name=name,
            stream=stream,
            connection=ConnectionSpec(bootstrap_servers="kafka:9092"),
            planned=lambda facts: {"src": {0: len(stream.starts)}},
            reopen=self._reopen,
            wait_for_kafka=lambda: {} if self.kafka_is_there else None,
            has_died=lambda error: False,
            told=lambda error: error,
            board=self._board,
            stop=self._stop,
            checkpoints=self._folder,
        )

    def _reopen(self) -> None:
        error = self.reopening.pop(0)
        if error is not None:
            raise error


def _lost_after(stop: StopSignal, other: FakeStream) -> None:
    assert stop.wait(WAIT_SECONDS) and other.running.is_set()
    raise LeaseLostError("orders", 1, 2)


@pytest.fixture
def queries(board: ProgressBoard, stop: StopSignal, tmp_path: Path) -> Queries:
    return Queries(board, stop, tmp_path)


def test_a_query_that_failed_starts_again_from_the_ledger_in_a_fresh_checkpoint(
    queries: Queries, board: ProgressBoard, stop: StopSignal
) -> None:
    stream, queries.reopening = FakeStream(stop, OSError("the disk"), stays=False), [None]
    queries.run(batches=stream)
    assert stream.starts == [({"src": {0: 0}}, "batches-0"), ({"src": {0: 1}}, "batches-1")]
    assert (board.latest.failures, board.latest.failing_error) == (1, "OSError")
    assert stop.request is None


def test_a_ledger_that_cannot_be_read_is_waited_for_as_what_the_query_meets(
    queries: Queries, board: ProgressBoard, stop: StopSignal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stop, "wait", lambda seconds: stop.is_set())
    away = StoreUnavailableError("redis:cards", "127.0.0.1:6379", "refused")
    stream, queries.reopening = FakeStream(stop, OSError("the disk"), stays=False), [away, away, away, away, None]
    queries.run(batches=stream)
    assert len(stream.starts) == 2 and board.latest.failing_error == "StoreUnavailableError"
    assert stop.request is None


@pytest.mark.parametrize(("ids", "waits"), [({7}, 3), ((), 0)])
def test_queries_that_end_again_and_again_for_schemas_wait_in_between(
    queries: Queries, stop: StopSignal, monkeypatch: pytest.MonkeyPatch, ids: Collection[int], waits: int
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(stop, "wait", lambda seconds: bool(waited.append(seconds)))
    stream, queries.reopening = FakeStream(stop, *[NewSchemasError("value", ids)] * 6, stays=False), [None] * 6
    queries.run(batches=stream)
    assert len(stream.starts) == 7 and stop.request is None
    assert len(waited) == waits and waited == sorted(waited), "the first ones start again at once"


def test_queries_that_land_between_new_schemas_never_wait(
    queries: Queries, stop: StopSignal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Landing(FakeStream):
        def run(self, start: NextOffsets, checkpoint: Path) -> None:
            self.landed_batches += 1
            super().run(start, checkpoint)

    monkeypatch.setattr(stop, "wait", lambda seconds: pytest.fail("it waited"))
    stream, queries.reopening = Landing(stop, *[NewSchemasError("value", {7})] * 6, stays=False), [None] * 6
    queries.run(batches=stream)
    assert len(stream.starts) == 7


def test_who_is_asked_to_end_in_an_outage_reads_no_ledger(queries: Queries, stop: StopSignal) -> None:
    stream, queries.kafka_is_there = FakeStream(stop, OSError("the disk"), stays=False), False
    queries.run(batches=stream)
    assert len(stream.starts) == 1


@pytest.mark.parametrize(("error", "verdict"), [(REFUSED, "refused"), (LeaseLostError("orders", 1, 2), "superseded")])
def test_what_ends_one_query_ends_the_other(queries: Queries, stop: StopSignal, error: LakeboundError, verdict: str) -> None:
    batches = FakeStream(stop)
    with pytest.raises(type(error)):
        queries.run(batches=batches, real_time=FakeStream(stop, error, after=batches))
    assert stop.request is not None and stop.request.verdict == verdict


@pytest.mark.parametrize(("landed", "stuck"), [(0, "real_time"), (1, None)])
def test_a_query_that_could_land_nothing_is_named_although_another_landed(
    queries: Queries, stop: StopSignal, landed: int, stuck: str | None
) -> None:
    batches = FakeStream(stop)
    batches.landed_batches = 5
    real_time = FakeStream(stop, REFUSED, after=batches)
    real_time.landed_batches = landed
    with pytest.raises(RealTimeRefusedError):
        queries.run(batches=batches, real_time=real_time)
    assert queries.stuck == stuck


def test_what_a_query_raises_while_it_is_asked_to_end_is_raised(queries: Queries, stop: StopSignal) -> None:
    batches = FakeStream(stop, stays=False)
    real_time = FakeStream(stop)
    real_time.run = lambda start, checkpoint: _lost_after(stop, batches)  # type: ignore[method-assign]
    with pytest.raises(LeaseLostError):
        queries.run(batches=batches, real_time=real_time)
    assert queries.stuck is None


def test_what_ends_the_first_query_is_raised_after_the_other_has_ended(queries: Queries, stop: StopSignal) -> None:
    real_time = FakeStream(stop)
    with pytest.raises(RealTimeRefusedError):
        queries.run(batches=FakeStream(stop, REFUSED, after=real_time), real_time=real_time)
    assert stop.request is not None and stop.request.verdict == "refused"


@pytest.mark.parametrize("first_ends", [True, False])
def test_both_end_when_one_has_nothing_more_to_do(queries: Queries, stop: StopSignal, first_ends: bool) -> None:
    stays = FakeStream(stop)
    ends = FakeStream(stop, stays=False, after=stays)
    streams = {"batches": ends, "real_time": stays} if first_ends else {"batches": stays, "real_time": ends}
    queries.run(**streams)
    assert stop.request is not None and stop.request.verdict == "completed"


def test_the_failures_of_one_query_are_not_forgotten_because_another_one_lands(board: ProgressBoard) -> None:
    board.fail("real time", OSError(), "a sentence")
    board.fail("real time", OSError(), "a sentence")
    board.fail("batches", ValueError(), "another")
    board.recover("batches")
    assert (board.latest.failures, board.latest.last_failure) == (2, "a sentence")
    board.recover("real time")
    assert (board.latest.failures, board.latest.failing_since, board.latest.last_failure) == (0, None, None)


def target(name: str, end: int, committed_at: float | None) -> Target:
    """Return a target that has landed so far."""
    coverage = {"src": TopicOffsets(topic_id="id", partitions={0: ((0, end),)})}
    table = SimpleNamespace(spec=SimpleNamespace(id=name))
    found = Target(cast(Any, table), cast(Any, SimpleNamespace(coverage=coverage, version=str(end), entry=None)))
    found.last_commit_at = committed_at
    return found


def test_the_board_shows_the_query_that_is_behind(board: ProgressBoard) -> None:
    report = TargetsReport(board, {"batches": [target("delta:a", 5, None)], "real time": [target("topic:b", 3, None)]})
    report.begin("batches", {"src": {0: 5}})
    assert board.latest.high_water_marks == {"src": {0: 3}}
    report.put("batches", [target("delta:a", 9, 100.0), target("iceberg:a", 8, 101.0)])
    assert (board.latest.high_water_marks, board.latest.last_commit_at) == ({"src": {0: 3}}, None)
    report.put("batches", [target("delta:a", 9, 100.0), target("iceberg:a", 8, 101.0)], 99_000)
    assert board.latest.newest_record_ms is None
    report.put("real time", [target("topic:b", 7, 90.0)], 89_000)
    assert (board.latest.high_water_marks, board.latest.last_commit_at) == ({"src": {0: 7}}, 90.0)
    report.put("real time", [target("topic:b", 7, 90.0)])
    assert board.latest.newest_record_ms == 89_000
    assert set(board.latest.tables) == {"delta:a", "iceberg:a", "topic:b"} and not board.latest.has_gaps
    late = target("delta:a", 9, 100.0)
    late.pending = {"src": TopicOffsets(topic_id="id", partitions={0: ((12, 14),)})}
    report.put("batches", [late, target("iceberg:a", 8, 101.0)])
    assert board.latest.has_gaps, "offsets 9 to 11 are for a replay to land"
