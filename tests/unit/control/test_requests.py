from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lakebound.control.desired import Desired, RunBound
from lakebound.control.progress import Outcome, Progress
from lakebound.control.requests import InvalidRequestError, RequestForm, Standing, await_kind, request_state
from lakebound.control.submission import Submission
from lakebound.spec.pipeline import PipelineSpec


def spec(freshness: str = "500ms") -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:9092"},
            "value": {"format": "bytes"},
            "freshness": freshness,
            "tables": [{"format": "delta", "name": "lake.orders"}],
        }
    )


def form(action: str, **fields: Any) -> RequestForm:
    return RequestForm.model_validate({"action": action, **fields})


def test_each_action_becomes_its_request() -> None:
    assert form("start").request(spec()).may_end_hold
    assert not form("start").request(spec()).restart
    assert form("restart", freshness="2s").request(spec()).freshness == "2s"
    assert form("restart").request(spec()).restart
    assert not form("restart").request(spec()).may_end_hold
    assert form("stop").request(spec()).state == "stopped"
    assert form("hold").request(spec()).state == "held"
    bounded = form("bounded_run", offsets={"orders": {"0": 12}}).request(spec())
    assert bounded.until == RunBound(offsets={"orders": {0: 12}})
    at = datetime(2026, 1, 31, 14, 5, tzinfo=UTC)
    assert form("bounded_run", until_time=at.isoformat()).request(spec()).until == RunBound(
        timestamp_ms=int(at.timestamp() * 1000)
    )


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (form("bounded_run"), "either offsets or until_time"),
        (form("bounded_run", offsets={"orders": {0: 1}}, until_time="2026-01-01T00:00:00Z"), "either offsets or until_time"),
        (form("bounded_run", offsets={"other": {0: 1}}), "does not read other"),
        (form("bounded_run", until_time="2026-01-01T00:00:00"), "time zone"),
        (form("stop", offsets={"orders": {0: 1}}), "only the action bounded_run takes"),
        (form("restart", freshness="soon"), "'soon' is neither"),
    ],
)
def test_a_form_that_contradicts_itself_changes_nothing(asked: RequestForm, says: str) -> None:
    with pytest.raises(InvalidRequestError, match=says):
        asked.request(spec())


def test_what_is_waited_for() -> None:
    assert await_kind(form("stop").request(spec()), spec()) == "stopped"
    assert await_kind(form("start").request(spec()), spec()) == "running"
    assert await_kind(form("start").request(spec("available_now")), spec("available_now")) is None
    assert await_kind(form("restart", freshness="available_now").request(spec()), spec()) is None
    assert await_kind(form("bounded_run", offsets={"orders": {0: 1}}).request(spec()), spec()) == "completed"


APP = Submission(app_id="app", generation=2)


def standing(
    desired: Desired | None = None,
    submission: Submission | None = APP,
    alive: bool = True,
    state: str | None = "running",
    verdict: str | None = None,
) -> Standing:
    progress = {"pipeline": "orders", "app_id": "app", "generation": 2, "state": state, "started_at": 0, "updated_at": 0}
    outcome = {"app_id": "app", "verdict": verdict, "reason": "why", "started_at": 0, "ended_at": 0}
    return Standing(
        desired=desired or Desired(generation=2),
        submission=submission,
        alive=alive,
        progress=Progress.model_validate(progress) if state else None,
        outcome=Outcome.model_validate(outcome) if verdict else None,
    )


def test_running_is_met_by_an_application_of_the_generation_that_runs() -> None:
    assert request_state("running", "running", 2, standing()).state == "met"
    assert request_state("running", "running", 2, standing(state="starting")).state == "waiting"
    former = standing(submission=Submission(app_id="app", generation=1))
    assert request_state("running", "running", 2, former).state == "waiting"
    nobody = request_state("running", "running", 2, standing(submission=None, alive=False))
    assert nobody.state == "waiting"
    assert "paused" in nobody.reason
    refused = request_state("running", "running", 2, standing(alive=False, verdict="refused"))
    assert (refused.state, "why" in refused.reason) == ("failed", True)


def test_stopped_is_met_when_nothing_lives() -> None:
    stopped = Desired(state="stopped", generation=2)
    assert request_state("stopped", "stopped", 2, standing(stopped)).state == "waiting"
    assert request_state("stopped", "stopped", 2, standing(stopped, alive=False)).state == "met"


def test_a_bounded_run_is_met_by_its_completion_though_the_application_then_wants_to_stay_stopped() -> None:
    rest = Desired(state="stopped", generation=3, by="app")
    assert request_state("completed", "running", 2, standing(rest)).state == "waiting"
    assert request_state("completed", "running", 2, standing(rest, alive=False, verdict="completed")).state == "met"


def test_another_request_ends_the_wait() -> None:
    found = request_state("running", "running", 2, standing(Desired(state="held", generation=2, reason="audit")))
    assert found.state == "failed"
    assert "audit" in found.reason
