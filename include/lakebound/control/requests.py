"""What a person can ask of a pipeline, and whether it has become so. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field, field_validator

from lakebound.control.desired import Desired, DesiredState, RunBound
from lakebound.control.progress import Outcome, Progress
from lakebound.control.submission import Submission
from lakebound.errors import LakeboundError
from lakebound.frozen import Frozen
from lakebound.ledger.marks import NextOffsets
from lakebound.spec.pipeline import PipelineSpec, parse_freshness
from lakebound.spec.real_time import REAL_TIME, real_time_problem

RequestedAction = Literal["start", "stop", "restart", "hold", "bounded_run"]
Awaited = Literal["running", "stopped", "completed"]


class InvalidRequestError(LakeboundError):
    """The form asks for something that contradicts itself, or the pipeline."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: {reason}; nothing was changed")


@dataclass(frozen=True)
class Request:
    """What is to be written as the desired state."""

    state: DesiredState
    restart: bool = False
    freshness: str | None = None
    until: RunBound | None = None
    reason: str = ""
    may_end_hold: bool = False


class RequestForm(Frozen):
    """What ``lakebound control`` and the form of the control DAG ask for, as a person fills it in."""

    action: RequestedAction
    freshness: str | None = None
    offsets: NextOffsets | None = None
    until_time: datetime | None = None
    reason: str = ""
    wait_seconds: float = Field(default=600.0, gt=0)

    @field_validator("freshness", "offsets", "until_time", mode="before")
    @classmethod
    def _empty_is_none(cls, value: object) -> object:
        return value or None

    def request(self, spec: PipelineSpec) -> Request:
        """Return the request.

        Raises:
            InvalidRequestError: The form contradicts itself, or the pipeline.
        """
        if self.freshness is not None:
            try:
                parse_freshness(self.freshness)
            except ValueError as exc:
                raise InvalidRequestError(spec.pipeline, f"freshness: {exc}") from exc
        bound = self._bound(spec)
        self._check_real_time(spec, bound)
        if self.action in ("stop", "hold"):
            return rest_request(self.action, self.reason)
        restart = self.action != "start"
        return Request("running", restart, self.freshness, bound, self.reason, may_end_hold=self.action == "start")

    def _check_real_time(self, spec: PipelineSpec, bound: RunBound | None) -> None:
        if (self.freshness or spec.freshness) != REAL_TIME:
            return
        if bound is not None:
            raise InvalidRequestError(spec.pipeline, "a bounded run is made of batches: give a freshness such as 0ms, too")
        problem = real_time_problem(spec)
        if problem is not None:
            raise InvalidRequestError(spec.pipeline, f"freshness: {problem[1]}")

    def _bound(self, spec: PipelineSpec) -> RunBound | None:
        given = [self.offsets is not None, self.until_time is not None]
        if self.action != "bounded_run":
            if any(given):
                raise InvalidRequestError(
                    spec.pipeline, f"only the action bounded_run takes offsets and until_time; the action is {self.action}"
                )
            return None
        if sum(given) != 1:
            raise InvalidRequestError(spec.pipeline, "a bounded run needs either offsets or until_time")
        if self.until_time is not None:
            if self.until_time.tzinfo is None:
                raise InvalidRequestError(spec.pipeline, "until_time needs a time zone, such as 2026-01-31T14:05:00Z")
            return RunBound(timestamp_ms=int(self.until_time.timestamp() * 1000))
        unknown = sorted(set(self.offsets or ()) - set(spec.topics))
        if unknown:
            raise InvalidRequestError(spec.pipeline, f"offsets: the pipeline does not read {', '.join(unknown)}")
        return RunBound(offsets=self.offsets)


def rest_request(action: RequestedAction, reason: str) -> Request:
    """Return the request of ``stop`` or ``hold``, for which nothing of the pipeline's YAML is needed."""
    if action == "stop":
        return Request("stopped", reason=reason, may_end_hold=True)
    return Request("held", reason=reason or "held by a person")


def await_kind(request: Request, spec: PipelineSpec) -> Awaited | None:
    """Return what to wait for; None when the pipeline's own schedule starts it, whenever that is."""
    if request.state != "running":
        return "stopped"
    if request.until is not None:
        return "completed"
    freshness = request.freshness or spec.freshness
    return "running" if spec.runs_continuously and parse_freshness(freshness) is not None else None


@dataclass(frozen=True)
class Standing:
    """The pipeline as it stands.

    Attributes:
        desired: The desired state as it is now.
        submission: The application that was submitted last.
        alive: Whether any application lives.
        progress: The latest.
        outcome: Of ``submission``.
    """

    desired: Desired
    submission: Submission | None
    alive: bool
    progress: Progress | None
    outcome: Outcome | None


@dataclass(frozen=True)
class RequestState:
    """Whether the request is fulfilled (``met``), cannot be (``failed``), or is not yet (``waiting``), and why."""

    state: Literal["met", "failed", "waiting"]
    reason: str


def request_state(awaited: Awaited, state: DesiredState, generation: int, standing: Standing) -> RequestState:
    """Return how far the request is.

    Args:
        awaited: What must become so.
        state: The desired state that was written.
        generation: Its generation.
        standing: The pipeline as it stands.
    """
    submission, outcome = standing.submission, standing.outcome
    of_request = submission is not None and submission.generation >= generation
    if awaited == "completed" and of_request and outcome is not None and outcome.verdict == "completed":
        return RequestState("met", f"complete: {outcome.records} records")
    # An application that reaches its bound writes the request to be stopped a moment before its outcome.
    written_by_app = submission is not None and standing.desired.by == submission.app_id
    if (standing.desired.state, standing.desired.generation) != (state, generation) and not written_by_app:
        return RequestState(
            "failed", f"another desired state was set since: {standing.desired.state} ({standing.desired.reason})"
        )
    if awaited == "stopped":
        return RequestState("waiting", "an application still runs") if standing.alive else RequestState("met", "nothing runs")
    if of_request and outcome is not None and outcome.verdict in ("failed", "refused"):
        return RequestState("failed", f"the application {outcome.verdict}: {outcome.reason}")
    if awaited == "running" and of_request and standing.alive and _lands(submission, standing.progress, generation):
        return RequestState("met", f"{submission.app_id if submission else ''} runs")
    if not standing.alive:
        return RequestState("waiting", "no application runs; check that Airflow runs and that its ingest DAG is not paused")
    return RequestState("waiting", "the application does not run with the new settings yet")


def _lands(submission: Submission | None, progress: Progress | None, generation: int) -> bool:
    if submission is None or progress is None or progress.app_id != submission.app_id:
        return False
    return progress.generation >= generation and progress.state in ("running", "waiting")
