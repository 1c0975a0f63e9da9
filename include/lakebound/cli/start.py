"""``lakebound start``: the short form of ``lakebound control PIPELINE start``."""

from __future__ import annotations

from lakebound.cli.control import Action, Pipeline, Reason, act
from lakebound.cli.output import Json


def start(pipeline: Pipeline, reason: Reason = "", json: Json = False) -> None:
    """Start a pipeline. This ends a stop, a hold or a crash loop, and unpauses its DAG where Airflow can be reached."""
    act(pipeline, Action.START, reason, as_json=json)
