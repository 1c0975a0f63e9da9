"""What a backfill's application is told; what it says of itself: ``lakebound.control.replay_result``."""

from __future__ import annotations

from typing import TypeVar

from lakebound.control.desired import Desired
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.settings import Settings
from lakebound.spec.pipeline import AVAILABLE_NOW, PipelineSpec

OrdersType = TypeVar("OrdersType", bound=RunSpec)


def backfill_orders(kind: type[OrdersType], spec: PipelineSpec, settings: Settings, app_id: str, **own: object) -> OrdersType:
    """Return the orders of a backfill that is about to be submitted.

    Args:
        kind: Its orders' class.
        spec: Pipeline whose tables get rows.
        settings: This machine's settings; the orders repeat its places.
        app_id: Id of the application that will run.
        **own: The fields that this kind adds to those of an application.
    """
    run = make_run_spec(spec, settings, Desired(freshness=AVAILABLE_NOW), app_id)
    return kind.model_validate({name: getattr(run, name) for name in RunSpec.model_fields} | own)
