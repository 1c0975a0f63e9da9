"""One look at an application after the other: what the stream's triggers do, without Airflow."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import structlog

from lakebound.control.desired import read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.lease import readable_lease
from lakebound.control.process_identity import is_visible, own_space
from lakebound.control.progress import Progress, read_outcome, readable_progress
from lakebound.control.situations import restart_command
from lakebound.control.submission import BackendName, Submission, read_submission
from lakebound.control.supervision import KafkaView, is_outdated, look_at_kafka, stall
from lakebound.errors import LakeboundError
from lakebound.landing.kafka import KafkaFacts
from lakebound.settings import Settings, load_settings
from lakebound.spec.limits import ThresholdsSpec
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.source import source_hash
from lakebound_airflow.backends.choice import backend_of
from lakebound_airflow.pipelines import spec_of

OUTSIDE_LOOK_SECONDS = 15.0
KAFKA_TIMEOUT_SECONDS = 5.0
# After its last word, an application's JVM takes a moment to go; one that hangs there is ended.
EXIT_SECONDS = 30.0
# After it was killed, an application on another machine counts as alive until its lease ends.
FORCE_SECONDS = 90.0

Event = dict[str, str]

log = structlog.get_logger(__name__)


def submission_of(control: ControlFolder, app_id: str) -> Submission:
    """Return the application's record; of one that was started past it, what the lease says."""
    submission = read_submission(control)
    if submission is not None and submission.app_id == app_id:
        return submission
    lease = readable_lease(control)
    if lease is not None and lease.app_id == app_id:
        return Submission(app_id=app_id, host=lease.host, submitted_at=lease.acquired_at, spark_ui=lease.spark_ui)
    return Submission(app_id=app_id, submitted_at=0.0)


class ApplicationElsewhereError(LakeboundError):
    """The backend started an application as a process that the triggerer cannot see, and could neither end nor restart."""

    def __init__(self, app_id: str, host: str | None) -> None:
        super().__init__(
            f"{app_id} runs in another container or on another machine ({host or 'unknown'}) than Airflow's triggerer: it ends "
            f"when that container ends, and the triggerer cannot end it when it stalls. Let applications run on a cluster "
            f"(backend standalone, whose drivers run on the cluster's workers), or run Airflow's workers and its triggerer on "
            f"one machine with one PID namespace; see docs/how-to/backends.md"
        )


@dataclass
class StreamWatch:
    """Watches one application; what it remembers between two looks may be lost, and is then learned again.

    The two looks may be taken in different threads.
    """

    control: ControlFolder
    app_id: str
    settings: Settings = field(default_factory=load_settings)
    kafka: KafkaView = field(default_factory=KafkaView)
    _spec: PipelineSpec | None = None
    _facts: KafkaFacts | None = None
    _said: set[str] = field(default_factory=set)
    _sign_of_life: float | None = None
    _seen: dict[str, tuple[float, float]] = field(default_factory=dict)

    def look(self, now: float) -> Event | None:
        """Return the event that ends the watch, or None. Reads files only."""
        submission = submission_of(self.control, self.app_id)
        backend = backend_of(submission, self.settings)
        outcome = read_outcome(self.control, self.app_id)
        if not backend.is_alive(self.control, submission):
            return {"event": "ended", "app_id": self.app_id, "reason": outcome.reason if outcome else "died without an outcome"}
        if outcome is not None:
            if now - self._when("outcome", outcome.ended_at, now) > EXIT_SECONDS:
                backend.kill(submission)
            return None
        return self._elsewhere(submission) or self._stalled(submission, now)

    def _elsewhere(self, submission: Submission) -> Event | None:
        """Return the event for a process of another container or machine that lives: it would end with that container.

        One sign of life is not enough: it may be the last one of an application that ended when both containers were started
        anew. Who started an application by hand knows where it runs.
        """
        process, lease = submission.process, readable_lease(self.control)
        if submission.backend is not BackendName.LOCAL or submission.owner is None or process is None:
            return None
        if lease is None or lease.app_id != self.app_id or is_visible(process.space, own_space()) is not None:
            return None
        before, self._sign_of_life = self._sign_of_life, lease.heartbeat_at
        if before is None or before == lease.heartbeat_at:
            return None
        return {
            "event": "elsewhere",
            "app_id": self.app_id,
            "reason": str(ApplicationElsewhereError(self.app_id, process.space.host)),
        }

    def _stalled(self, submission: Submission, now: float) -> Event | None:
        desired = read_desired(self.control)
        thresholds = self._spec.thresholds if self._spec else ThresholdsSpec()
        freshness = self._spec.pace(desired.freshness) if self._spec else desired.freshness or "0ms"
        submitted_at = self._when("submission", submission.submitted_at, now)
        submission = submission.model_copy(update={"submitted_at": submitted_at})
        verdict = stall(thresholds, freshness, submission, self._progress(now), self.kafka, now)
        if verdict is None:
            return None
        return {"event": "stalled", "app_id": self.app_id, "kind": verdict.kind, "reason": verdict.reason}

    def _progress(self, now: float) -> Progress | None:
        """Return the newest progress, its times by this machine's clock."""
        progress = readable_progress(self.control)
        if progress is None or not self.control.is_shared:
            return progress
        updated_at = self._when("progress", progress.updated_at, now)
        since = None if progress.state_since is None else progress.state_since + updated_at - progress.updated_at
        return progress.model_copy(update={"updated_at": updated_at, "state_since": since})

    def _when(self, what: str, at: float, now: float) -> float:
        """Return a time that was noted; in shared state, whose writer's clock may differ, when this watch saw it first."""
        if not self.control.is_shared:
            return at
        if what not in self._seen or self._seen[what][0] != at:
            self._seen[what] = (at, now)
        return self._seen[what][1]

    def look_outside(self) -> None:
        """Look at the pipeline's YAML and at Kafka; waits for Kafka some seconds, and raises nothing."""
        try:
            self._look_outside()
        except Exception as exc:
            # Any error: a look that ended the looks would leave it unseen for good that nothing is committed.
            reason = str(exc) if isinstance(exc, LakeboundError) else f"{type(exc).__name__}: {exc}"
            self._say(f"the watcher could not read Kafka: {reason}")
            self.kafka = KafkaView()

    def _look_outside(self) -> None:
        found = spec_of(self.control.pipeline, self.settings)
        if self._spec is None or found.connection != self._spec.connection:
            self._facts = None
        self._spec = found
        self._say_if_outdated(submission_of(self.control, self.app_id), found)
        if self._facts is None:
            self._facts = KafkaFacts(found.connection, timeout_seconds=KAFKA_TIMEOUT_SECONDS)
        latest = {topic: facts.latest for topic, facts in self._facts.topics(found.topics).items()}
        self.kafka = look_at_kafka(self.kafka, readable_progress(self.control), latest, time.time())

    def _say_if_outdated(self, submission: Submission, spec: PipelineSpec) -> None:
        if is_outdated(submission.source_hash, source_hash(spec, self.settings.apps)):
            command = restart_command(spec.pipeline)
            self._say(f"outdated: {self.app_id} runs an older YAML or transform; restart it: {command}")

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.warning(text, pipeline=self.control.pipeline)


def end_of_replaced(control: ControlFolder, app_id: str, deadline: float) -> Event | None:
    """Return the event that ends the wait for an application that was asked to stop, or None.

    Args:
        control: The pipeline's folder.
        app_id: The application.
        deadline: By the monotonic clock; past it the application is ended by force. Its uncommitted batch is read again.
    """
    submission = submission_of(control, app_id)
    backend = backend_of(submission, load_settings())
    if not backend.is_alive(control, submission):
        return {"event": "replaced", "app_id": app_id, "reason": "it has ended"}
    if time.monotonic() < deadline:
        return None
    backend.kill(submission)
    if backend.is_alive(control, submission) and time.monotonic() > deadline + FORCE_SECONDS:
        return {
            "event": "stuck",
            "app_id": app_id,
            "reason": f"{app_id} does not stop and cannot be killed from this machine; kill it where it runs",
        }
    return None
