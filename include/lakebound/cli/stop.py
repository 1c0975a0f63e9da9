"""``lakebound stop``: the short form of ``lakebound control PIPELINE stop``."""

from __future__ import annotations

from lakebound.cli.control import WAIT_SECONDS, Action, Pipeline, Reason, Wait, act
from lakebound.cli.output import Json


def stop(pipeline: Pipeline, reason: Reason = "", wait: Wait = WAIT_SECONDS, json: Json = False) -> None:
    """Stop a pipeline: its application ends after the current batch, and nothing starts it until `lakebound start`."""
    act(pipeline, Action.STOP, reason, wait_seconds=wait, as_json=json)
