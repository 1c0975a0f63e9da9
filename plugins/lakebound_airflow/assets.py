"""Tables as Airflow assets: a DAG that schedules on one runs when data has landed in it."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import Asset, AssetWatcher
from airflow.triggers.base import BaseEventTrigger

from lakebound_airflow.triggers.commits import TableCommitsTrigger
from lakebound_airflow.triggers.hours import HoursDueTrigger
from lakebound_airflow.triggers.redone import TableRedoneTrigger

_NEVER_SECONDS = 10 * 365 * 86_400.0
_NEVER_COMMITS = 1_000_000_000


def table_asset(pipeline: str, table: str, *, every_commits: int = 100, every_seconds: float = 60.0) -> Asset:
    """Return the asset of a table, with watchers that give an event as its commits come in, and after a redo of its rows.

    Airflow keeps one set of watchers per asset, that of the DAG file which it read last, and drops the events of the set
    before. So name a table's asset through this function only, with the same numbers in every DAG.

    Args:
        pipeline: Its name.
        table: Its id, ``delta:name`` or ``iceberg:name``.
        every_commits: Number of commits after which there is an event.
        every_seconds: Fewer wait no longer than so.
    """
    commits = TableCommitsTrigger(pipeline, table, every_commits, every_seconds)
    watchers = {f"{pipeline}/{table}": commits, f"{pipeline}/{table}/redone": TableRedoneTrigger(pipeline, table)}
    return _watched(_address(pipeline, table.replace(":", "/", 1)), watchers)


def hours_due_asset(pipeline: str) -> Asset:
    """Return the asset that has an event when hours of a pipeline's tables are complete; only ``hours__`` uses it."""
    trigger = HoursDueTrigger(pipeline)
    return _watched(_address(pipeline, "hours-due"), {f"{pipeline}/hours": trigger})


def complete_hours_asset(pipeline: str, table: str) -> Asset:
    """Return the partitioned asset of a table: an event per hour that is complete, with the hour as its partition key.

    Args:
        pipeline: Name of the pipeline, whose YAML has a block ``complete_hours``.
        table: Id of the table, ``delta:name`` or ``iceberg:name``.
    """
    uri = _address(pipeline, f"{table.replace(':', '/', 1)}/complete-hours")
    return Asset(name=uri, uri=uri, group="lakebound")


def maintenance_asset(pipeline: str, table: str, *, every_commits: int) -> Asset:
    """Return the asset that has an event after a number of commits to a table; only maintenance is scheduled on it.

    It is not the table's own asset, whose numbers everybody shares.

    Args:
        pipeline: Name of the pipeline.
        table: Id of the table, ``delta:name`` or ``iceberg:name``.
        every_commits: Number of commits after which there is an event.
    """
    trigger = TableCommitsTrigger(pipeline, table, every_commits, _NEVER_SECONDS)
    return _watched(_address(pipeline, "maintenance-due"), {f"{pipeline}/maintenance": trigger})


def maintained_asset(pipeline: str) -> Asset:
    """Return the asset that has an event when a pipeline's tables were maintained."""
    uri = _address(pipeline, "maintained")
    return Asset(name=uri, uri=uri)


def validation_asset(pipeline: str, table: str, *, every_seconds: float) -> Asset:
    """Return the asset that has an event after new commits to a table, at most in this interval; only validation uses it.

    Args:
        pipeline: Name of the pipeline.
        table: Id of the table, ``delta:name`` or ``iceberg:name``.
        every_seconds: Shortest time between two events.
    """
    # A run that finds nothing due ends at once; rows that nobody announces would wait until others land.
    trigger = TableCommitsTrigger(pipeline, table, _NEVER_COMMITS, every_seconds, from_before=True)
    return _watched(_address(pipeline, "validation-due"), {f"{pipeline}/validation": trigger})


def validated_asset(pipeline: str) -> Asset:
    """Return the asset that has an event when a pipeline's tables were validated."""
    uri = _address(pipeline, "validated")
    return Asset(name=uri, uri=uri)


def _address(pipeline: str, what: str) -> str:
    return f"lakebound://{pipeline}/{what}"


def _watched(uri: str, watchers: Mapping[str, BaseEventTrigger]) -> Asset:
    found = [AssetWatcher(name=name, trigger=trigger) for name, trigger in watchers.items()]
    return Asset(name=uri, uri=uri, group="lakebound", watchers=found)
