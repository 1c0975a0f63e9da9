"""Signs of life and requests to end: the threads beside the stream. Nothing here can stop a stream by failing."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder, read_json
from lakebound.control.lease import Lease, check_held, renew
from lakebound.control.progress import AppState, Progress, write_progress
from lakebound.errors import LakeboundError, LeaseLostError, LockHeldError
from lakebound.landing.kafka import KafkaFacts
from lakebound.landing.ledger_recorder import LedgerRecorder
from lakebound.landing.rollup_recorder import RollupRecorder
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.marks import SeenEnds, lag, seen_ends
from lakebound_spark.stream.stop_signal import StopSignal

log = logging.getLogger(__name__)

PROGRESS_INTERVAL_SECONDS = 1.0
LAG_INTERVAL_SECONDS = 5.0


class ProgressBoard:
    """The application's progress: changed by the stream, written by a thread."""

    def __init__(self, run: RunSpec, epoch: int) -> None:
        now = time.time()
        self._control = run.control
        self._lock = threading.Lock()
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

    def fail(self, error: Exception, sentence: str) -> None:
        """Say that an attempt failed, and that another one follows."""
        latest = self._progress
        self.change(
            failures=latest.failures + 1,
            failing_since=latest.failing_since or time.time(),
            failing_error=type(error).__name__,
            last_failure=sentence,
        )

    def write(self) -> None:
        """Write the file; a disk that is full must not stop the stream."""
        self.change(updated_at=time.time())
        try:
            write_progress(self._control, self._progress)
        except OSError as exc:
            log.warning("progress could not be written: %s", exc)


class SignsOfLife:
    """Renews the lease, writes progress and rollups, and looks for requests to end, once a second."""

    def __init__(
        self,
        run: RunSpec,
        lease: Lease,
        board: ProgressBoard,
        stop: StopSignal,
        recorder: RollupRecorder,
        ledger: LedgerRecorder,
    ) -> None:
        self._run = run
        self._lease = lease
        self._board = board
        self._stop = stop
        self._recorder = recorder
        self._ledger = ledger
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
            try:
                self._lease = renew(self._run.control, self._lease, spark_ui=self._board.latest.spark_ui)
                self._obey()
            except LeaseLostError as exc:
                self._recorder.close()
                self._ledger.close()
                self._stop.set("superseded", str(exc))
            except (LockHeldError, OSError, ValueError) as exc:
                log.warning("lease or desired state: %s", exc)
            self._board.write()
            self._recorder.tick(self._board.latest)
            self._ledger.tick()
            self._ended.wait(PROGRESS_INTERVAL_SECONDS)

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
            except LakeboundError as exc:
                log.warning("lag is not known: %s", exc)
                continue
            marks = self._board.latest.high_water_marks
            self._seen = seen_ends(self._seen, marks, latest, asked_at)
            complete = {} if self._seen.landed_at is None else {"complete_until": self._seen.landed_at}
            self._board.change(latest_offsets=latest, lag_records=lag(marks, latest), **complete)


def lease_guard(control: ControlFolder, own: Lease) -> Callable[[], None]:
    """Return a check that raises LeaseLostError once another application has taken the lease."""
    return partial(check_held, control, own)
