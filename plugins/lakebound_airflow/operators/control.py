"""The operator behind ``control__<pipeline>``: writes the wish as ``lakebound control`` does, and waits until it is so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from airflow.sdk import BaseOperator

from lakebound.control.requests import RequestedAction, WishForm, await_kind
from lakebound.control.wishes import write_wish
from lakebound.errors import LakeboundError
from lakebound.settings import load_settings
from lakebound_airflow.pipelines import control_of, spec_of
from lakebound_airflow.triggers.control import WishTrigger

ACTIONS: list[str] = list(get_args(RequestedAction))
"""What the DAG's form offers."""

Context = Mapping[str, Any]


class WishNotMetError(LakeboundError):
    """The wish was written, and it is not so."""

    def __init__(self, pipeline: str, reason: str) -> None:
        super().__init__(f"pipeline {pipeline!r}: {reason}; the desired state remains as requested")


class ControlOperator(BaseOperator):
    """Writes what the form of the run asks for; XCom: the wish as written.

    Args:
        pipeline: Its name.
    """

    ui_color = "#ffe6cc"

    def __init__(self, *, pipeline: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pipeline = pipeline

    def execute(self, context: Context) -> Any:
        """Write the wish; defer until it is so.

        Raises:
            InvalidWishError: The form contradicts itself, or the pipeline.
            HeldError: The pipeline is held, and this action may not end that.
        """
        settings = load_settings()
        spec = spec_of(self.pipeline, settings)
        form = WishForm.model_validate(dict(context["params"]))
        wish = form.wish(spec)
        desired = write_wish(control_of(self.pipeline, settings), wish, by=_user(context))
        self.log.info("%s: the desired state is %s (generation %d)", self.pipeline, desired.state, desired.generation)
        kind = await_kind(wish, spec)
        if kind is None:
            self.log.info("nothing to wait for: the schedule of the pipeline starts it")
            return desired.model_dump(mode="json")
        trigger = WishTrigger(self.pipeline, str(settings.home), kind, desired.state, desired.generation, form.wait_seconds)
        self.defer(trigger=trigger, method_name="finish", kwargs={"wish": desired.model_dump(mode="json")})

    def finish(self, context: Context, event: dict[str, str], wish: dict[str, Any]) -> Any:
        """Return the wish, when it is so.

        Args:
            context: Airflow's context of the task.
            event: What the trigger saw: ``event`` is ``met`` when the wish is fulfilled, ``reason`` is a sentence.
            wish: The wish as ``execute`` wrote it, in JSON; it becomes the XCom.

        Raises:
            WishNotMetError: It is not, and why.
        """
        if event["event"] != "met":
            raise WishNotMetError(self.pipeline, event["reason"])
        self.log.info("the desired state is reached: %s", event["reason"])
        return wish


def _user(context: Context) -> str:
    return str(getattr(context["dag_run"], "triggering_user_name", None) or "airflow")
