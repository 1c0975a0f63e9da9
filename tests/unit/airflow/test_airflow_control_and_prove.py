from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from airflow.sdk.module_loading import import_string
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401

import lakebound.inspection.proof.collect
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.requests import InvalidRequestError
from lakebound.errors import HeldError
from lakebound.inspection.proof.result import Proof, TableProof
from lakebound.settings import Settings
from lakebound_airflow.operators.control import ControlOperator, RequestNotMetError
from lakebound_airflow.operators.prove import NotProvedError, ProveOperator
from lakebound_airflow.triggers.control import RequestTrigger


def context(**params: Any) -> dict[str, Any]:
    return {"params": params, "dag_run": SimpleNamespace(triggering_user_name="ada")}


def test_the_control_operator_writes_the_request_and_waits_for_it(settings: Settings) -> None:
    operator = ControlOperator(task_id="control", pipeline="orders")
    with pytest.raises(TaskDeferred) as deferral:
        operator.execute(context(action="stop", reason="audit", freshness=None, offsets=None, until_time=None, wait_seconds=5))
    desired = read_desired(orders(settings).control)
    assert (desired.state, desired.reason, desired.by) == ("stopped", "audit", "ada")
    kwargs = deferral.value.kwargs
    assert operator.finish({}, {"event": "met", "reason": "nothing runs"}, **kwargs)["state"] == "stopped"
    with pytest.raises(RequestNotMetError, match="an application still runs"):
        operator.finish({}, {"event": "late", "reason": "an application still runs"}, **kwargs)


def test_a_task_that_an_earlier_version_deferred_is_finished(settings: Settings) -> None:
    path, arguments = RequestTrigger("orders", str(settings.home), "stopped", "stopped", 1, 5.0).serialize()
    assert import_string(path.replace("RequestTrigger", "WishTrigger"))(**arguments).generation == 1
    operator = ControlOperator(task_id="control", pipeline="orders")
    assert operator.finish({}, {"event": "met", "reason": "nothing runs"}, wish={"state": "stopped"}) == {"state": "stopped"}


def test_a_hold_is_ended_by_start_and_not_by_restart(settings: Settings) -> None:
    control = orders(settings).control
    change_desired(control, "held", reason="audit")
    operator = ControlOperator(task_id="control", pipeline="orders")
    with pytest.raises(HeldError, match="audit"):
        operator.execute(context(action="restart"))
    with pytest.raises(InvalidRequestError):
        operator.execute(context(action="bounded_run"))
    assert read_desired(control).state == "held"
    with pytest.raises(TaskDeferred):
        operator.execute(context(action="start"))
    assert read_desired(control).state == "running"


def test_a_proof_that_does_not_hold_fails_with_every_problem(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def prove(spec: Any, places: Any, *, deep: bool) -> Proof:
        asked.append(deep)
        problems = ("missing 3: orders/0 [4, 7)",) if deep else ()
        return Proof(pipeline=spec.pipeline, level="rows", tables=(TableProof(table="delta:lake.orders", problems=problems),))

    monkeypatch.setattr(lakebound.inspection.proof.collect, "prove", prove)
    operator = ProveOperator(task_id="prove", pipeline="orders")
    assert operator.execute(context(deep=False))["missing"] == 0
    with pytest.raises(NotProvedError, match=r"delta:lake\.orders: missing 3: orders/0 \[4, 7\)"):
        operator.execute(context(deep=True))
    assert asked == [False, True]
