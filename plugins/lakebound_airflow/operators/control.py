"""The operator behind ``control__<pipeline>``: writes a request as ``lakebound control`` does, and waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from airflow.sdk import BaseOperator

from lakebound.control.request_file import write_request
from lakebound.control.requests import RequestedAction, RequestForm, await_kind
from lakebound.errors import LakeboundError
from lakebound.settings import load_settings
from lakebound_airflow.pipelines import control_of, spec_of
from lakebound_airflow.triggers.control import RequestTrigger

ACTIONS: list[str] = list(get_args(RequestedAction))
"""What the DAG's form offers."""

Context = Mapping[str, Any]


class RequestNotMetError(LakeboundError):
    """The request was written, and it was not fulfilled."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: {reason}; the desired state remains as requested")


class ControlOperator(BaseOperator):
    """Writes what the form of the run asks for; XCom: the desired state as written.

    Args:
        pipeline: Its name.
    """

    ui_color = "#ffe6cc"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> Any:
        """Write the request; defer until it is fulfilled.

        Raises:
            InvalidRequestError: The form contradicts itself, or the pipeline.
            HeldError: The pipeline is held, and this action may not end that.
        """
        settings = load_settings()
        spec = spec_of(self.pipeline, settings)
        form = RequestForm.model_validate(dict(context["params"]))
        request = form.request(spec)
        desired = write_request(control_of(self.pipeline, settings), request, by=_user(context))
        self.log.info("%s: the desired state is %s (generation %d)", self.pipeline, desired.state, desired.generation)
        kind = await_kind(request, spec)
        if kind is None:
            self.log.info("nothing to wait for: the schedule of the pipeline starts it")
            return desired.model_dump(mode="json")
        trigger = RequestTrigger(self.pipeline, str(settings.home), kind, desired.state, desired.generation, form.wait_seconds)
        self.defer(trigger=trigger, method_name="finish", kwargs={"desired": desired.model_dump(mode="json")})

    def finish(
        self,
        context: Context,
        event: dict[str, str],
        desired: dict[str, Any] | None = None,
        wish: dict[str, Any] | None = None,
    ) -> Any:
        """Return the desired state, when the request is fulfilled.

        Args:
            context: Airflow's context of the task.
            event: What the trigger saw: ``event`` is ``met`` when the request is fulfilled, ``reason`` is a sentence.
            desired: The desired state as ``execute`` wrote it, in JSON; it becomes the XCom.
            wish: Its name in tasks that an earlier version deferred.

        Raises:
            RequestNotMetError: It is not, and why.
        """
        if event["event"] != "met":
            raise RequestNotMetError(self.pipeline, event["reason"])
        self.log.info("the desired state is reached: %s", event["reason"])
        return desired or wish


def _user(context: Context) -> str:
    return str(getattr(context["dag_run"], "triggering_user_name", None) or "airflow")
