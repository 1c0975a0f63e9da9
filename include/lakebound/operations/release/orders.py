"""What the application that releases quarantined records is told, and what it says of itself."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lakebound.control.desired import Desired
from lakebound.control.folder import ControlFolder, read_json
from lakebound.control.replay_result import ReplayResult, result_file
from lakebound.frozen import FrozenRecord
from lakebound.landing.run_spec import RunSpec, make_run_spec
from lakebound.operations.release.reasons import DECODER_REASONS
from lakebound.settings import Settings
from lakebound.spec.pipeline import AVAILABLE_NOW, PipelineSpec

APPLICATION = "release.py"


class ReleaseOrders(RunSpec):
    """One release's orders: those of an application, which reasons are tried, and whether anything is committed."""

    reasons: tuple[str, ...] = DECODER_REASONS
    is_trial: bool = False


class Verdicts(FrozenRecord):
    """Of records with one reason: how many fit today, and how many do not."""

    fit: int = 0
    stay: int = 0


class ReleaseResult(ReplayResult):
    """How far a release has got; a trial lands nothing. It lies among those of replays: maintenance leaves its files."""

    is_trial: bool = False
    verdicts: dict[str, Verdicts] = Field(default_factory=dict)


def release_orders(
    spec: PipelineSpec, settings: Settings, app_id: str, *, reasons: tuple[str, ...] = DECODER_REASONS, is_trial: bool = False
) -> ReleaseOrders:
    """Return the orders of a release that is about to be submitted.

    Args:
        spec: Pipeline whose quarantine is released.
        settings: This machine's settings; the orders repeat its places.
        app_id: Id of the application that will run.
        reasons: Only records that were quarantined for one of these reasons are tried.
        is_trial: Whether the application only counts what would fit, and commits nothing.
    """
    run = make_run_spec(spec, settings, Desired(freshness=AVAILABLE_NOW), app_id)
    return ReleaseOrders(**{name: getattr(run, name) for name in RunSpec.model_fields}, reasons=reasons, is_trial=is_trial)


def read_release(control: ControlFolder, app_id: str) -> ReleaseResult | None:
    """Return the release's record, or None before its first word."""
    body: Any = read_json(result_file(control, app_id), None)
    return None if body is None else ReleaseResult.model_validate(body)
