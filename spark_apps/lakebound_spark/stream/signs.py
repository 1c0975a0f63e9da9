"""Signs of life and requests to end: the threads beside the stream. Nothing here can stop a stream by failing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder, read_json
from lakebound.control.lease import Lease, check_held, renew
from lakebound.control.progress import AppState, Progress, write_progress
from lakebound.errors import LakeboundError, LeaseLostError, StateAwayError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.ledger_recorder import LedgerRecorder
from lakebound.landing.rollup_recorder import RollupRecorder
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.ledger.marks import SeenEnds, lag, seen_ends
from lakebound_spark.stream.chores import Chore, paces
from lakebound_spark.stream.stop_signal import StopSignal

log = logging.getLogger(__name__)

PROGRESS_INTERVAL_SECONDS = 1.0
LAG_INTERVAL_SECONDS = 5.0


@dataclass(frozen=True)
class _Failing:
    """The failures of a query since it last landed something."""

    times: int = 0
    since: float | None = None
    error: str | None = None
    sentence: str | None = None


class ProgressBoard:
    """The application's progress: changed by its queries, written by a thread."""

    def __init__(self, run: RunSpec, epoch: int) -> None:
        now = time.time()
        self._control = run.control
        self._lock = threading.Lock()
        self._failing: dict[str, _Failing] = {}
        self._progress = Progress(
            pipeline=run.spec.pipeline,
            app_id=run.app_id,
            epoch=epoch,
            generation=run.generation,
            source_hash=run.source_hash,
            started_at=now,
            updated_at=now,
        )

    @property
    def latest(self) -> Progress:
        """What was last put on the board."""
        return self._progress

    def change(self, **changes: object) -> None:
        """Put something on the board; it is written within a second."""
        with self._lock:
            self._progress = self._progress.model_copy(update=changes)

    def wait_for(self, error: Exception, sentence: str) -> None:
        """Say that something is waited for, and what."""
        latest, cause, now = self._progress, type(error).__name__, time.time()
        since = latest.waiting_since if latest.waiting_error == cause else None
        self.change(state="waiting", waiting_for=sentence, waiting_error=cause, waiting_since=since or now)

    def wait_no_more(self, state: AppState) -> None:
        """Say that nothing is waited for any more."""
        self.change(state=state, state_since=time.time(), waiting_for=None, waiting_error=None, waiting_since=None)

    def fail(self, query: str, error: Exception, sentence: str) -> None:
        """Say that an attempt of a query failed, and that another one follows."""
        with self._lock:
            before = self._failing.get(query, _Failing())
            since = before.since or time.time()
            self._failing[query] = _Failing(before.times + 1, since, type(error).__name__, sentence)
            self._show_failing()

    def recover(self, query: str) -> None:
        """Say that a query has landed something; the failures of another one stay on the board."""
        with self._lock:
            if self._failing.pop(query, None) is not None:
                self._show_failing()

    def _show_failing(self) -> None:
        worst = max(self._failing.values(), key=lambda one: one.times, default=_Failing())
        shown = {
            "failures": worst.times,
            "failing_since": worst.since,
            "failing_error": worst.error,
            "last_failure": worst.sentence,
        }
        self._progress = self._progress.model_copy(update=shown)

    def write(self) -> None:
        """Write the file; a disk that is full, or a store that is away, must not stop the stream."""
        self.change(updated_at=time.time())
        try:
            write_progress(self._control, self._progress)
        except (LakeboundError, OSError) as exc:
            log.warning("progress could not be written: %s", exc)


class SignsOfLife:
    """Renews the lease, writes progress and rollups, and looks for requests to end, once a second.

    Where state is shared the store is asked less often, and in the background: an answer that takes long delays nothing else.
    When the lease could not be renewed for as long as it lasts, another application may have it: then this one ends.
    """

    def __init__(
        self,
        run: RunSpec,
        lease: Lease,
        board: ProgressBoard,
        stop: StopSignal,
        recorder: RollupRecorder,
        ledger: LedgerRecorder,
        samples: SampleRecorder,
    ) -> None:
        self._run = run
        self._lease = lease
        self._board = board
        self._stop = stop
        self._recorder = recorder
        self._ledger = ledger
        self._samples = samples
        self._renewed_at = time.monotonic()
        every = paces(run.control, lease.ttl_seconds)
        self._renewing = Chore(self._renew, every.renew_seconds, name="renewing the lease")
        self._obeying = Chore(self._obey, every.obey_seconds, name="reading the desired state")
        self._writing = Chore(board.write, every.progress_seconds, name="writing the progress")
        self._noting = Chore(ledger.tick, every.batches_seconds, name="noting the batches")
        self._sampling = Chore(samples.tick, every.batches_seconds, name="keeping samples of bad records")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="signs-of-life", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop the thread and wait for it."""
        self._ended.set()
        self._thread.join(timeout=10)

    def _loop(self) -> None:
        while not self._ended.is_set():
            for chore in (self._renewing, self._obeying, self._writing):
                self._do(chore)
            self._end_if_lost()
            self._recorder.tick(self._board.latest)
            for chore in (self._noting, self._sampling):
                self._do(chore)
            self._ended.wait(PROGRESS_INTERVAL_SECONDS)

    def _do(self, chore: Chore) -> None:
        """Do a chore when it is due. Whatever it fails at is tried again: without this thread the lease would end unseen."""
        try:
            chore.tick()
        except LeaseLostError as exc:
            self._recorder.close()
            self._ledger.close()
            self._samples.close()
            self._stop.set("superseded", str(exc))
        except Exception as exc:
            log.warning("%s failed and is tried again: %s: %s", chore.name, type(exc).__name__, exc)

    def _renew(self) -> None:
        began = time.monotonic()
        self._lease = renew(self._run.control, self._lease, spark_ui=self._board.latest.spark_ui)
        self._renewed_at = began

    def _end_if_lost(self) -> None:
        """End the application when another one may have the lease; the disk of this machine is waited for without end."""
        silent = time.monotonic() - self._renewed_at
        if self._run.control.is_shared and silent > self._lease.ttl_seconds:
            error = StateAwayError(self._run.spec.pipeline, self._run.control.shared, silent)
            self._stop.set("failed", str(error), error)

    def _obey(self) -> None:
        control = self._run.control
        marker = read_json(control.stop_marker(self._run.app_id))
        if marker is not None:
            self._stop.set(
                "stopped", f"asked to stop by {marker.get('by') or 'somebody'}: {marker.get('reason') or 'no reason given'}"
            )
            return
        desired = read_desired(control)
        if not desired.wants_app:
            self._stop.set("stopped", f"desired state is {desired.state}: {desired.reason or 'no reason given'}")
        elif desired.generation > self._run.generation:
            self._stop.set("stopped", f"a newer generation ({desired.generation}) is wanted")


class LagWatch:
    """Asks Kafka for its latest offsets now and then; an answer that takes long delays nothing else."""

    def __init__(self, facts: KafkaFacts, topics: Iterable[str], board: ProgressBoard) -> None:
        self._facts = facts
        self._topics = list(topics)
        self._board = board
        self._seen = SeenEnds()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="lag", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Tell the thread to stop; it may still be waiting for Kafka, and is a daemon."""
        self._ended.set()

    def _loop(self) -> None:
        while not self._ended.wait(LAG_INTERVAL_SECONDS):
            asked_at = time.time()
            try:
                latest = {topic: known.latest for topic, known in self._facts.topics(self._topics).items()}
            except Exception as exc:
                log.warning("lag is not known: %s: %s", type(exc).__name__, exc)
                continue
            marks = self._board.latest.high_water_marks
            if not self._board.latest.has_gaps:
                self._seen = seen_ends(self._seen, marks, latest, asked_at)
            complete = {} if self._seen.landed_at is None else {"complete_until": self._seen.landed_at}
            self._board.change(latest_offsets=latest, lag_records=lag(marks, latest), **complete)


def lease_guard(control: ControlFolder, own: Lease) -> Callable[[], None]:
    """Return a check that raises LeaseLostError once another application has taken the lease."""
    return partial(check_held, control, own)
