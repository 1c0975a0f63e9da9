"""What a replay's application is told; what it says of itself: ``lakebound.control.replay_result``."""

from __future__ import annotations

from lakebound.control.desired import Desired
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.ledger.entry import Offsets
from lakebound.settings import Settings
from lakebound.spec.pipeline import AVAILABLE_NOW, PipelineSpec

APPLICATION = "replay.py"


class ReplayOrders(RunSpec):
    """One replay's orders: those of an application, and the offsets that any table lacks."""

    wanted: Offsets


def replay_orders(spec: PipelineSpec, settings: Settings, wanted: Offsets, app_id: str) -> ReplayOrders:
    """Return the orders of a replay that is about to be submitted.

    Args:
        spec: Pipeline whose tables get the records.
        settings: This machine's settings; the orders repeat its places.
        wanted: Offsets to land, by topic.
        app_id: Id of the application that will run.
    """
    run = make_run_spec(spec, settings, Desired(freshness=AVAILABLE_NOW), app_id)
    return ReplayOrders(**{name: getattr(run, name) for name in RunSpec.model_fields}, wanted=wanted)
