"""Tables as Airflow assets: a DAG that schedules on one runs when data has landed in it."""

from __future__ import annotations

from airflow.sdk import Asset, AssetWatcher

from lakebound_airflow.triggers.commits import TableCommitsTrigger

_NEVER_SECONDS = 10 * 365 * 86_400.0
_NEVER_COMMITS = 1_000_000_000


def table_asset(pipeline: str, table: str, *, every_commits: int = 100, every_seconds: float = 60.0) -> Asset:
    """Return the asset of a table, with a watcher that gives an event as its commits come in.

    Airflow keeps one set of watchers per asset, that of the DAG file which it read last, and drops the events of the set
    before. So name a table's asset through this function only, with the same numbers in every DAG.

    Args:
        pipeline: Its name.
        table: Its id, ``delta:name`` or ``iceberg:name``.
        every_commits: So many commits are worth an event.
        every_seconds: Fewer wait no longer than so.
    """
    uri = f"lakebound://{pipeline}/{table.replace(':', '/', 1)}"
    trigger = TableCommitsTrigger(pipeline, table, every_commits, every_seconds)
    return Asset(name=uri, uri=uri, group="lakebound", watchers=[AssetWatcher(name=f"{pipeline}/{table}", trigger=trigger)])


def maintenance_asset(pipeline: str, table: str, *, every_commits: int) -> Asset:
    """Return the asset that has an event when a table got so many commits; only what maintains the pipeline schedules on it.

    It is not the table's own asset, whose numbers everybody shares.
    """
    uri = f"lakebound://{pipeline}/maintenance-due"
    trigger = TableCommitsTrigger(pipeline, table, every_commits, _NEVER_SECONDS)
    return Asset(name=uri, uri=uri, group="lakebound", watchers=[AssetWatcher(name=f"{pipeline}/maintenance", trigger=trigger)])


def validation_asset(pipeline: str, table: str, *, every_seconds: float) -> Asset:
    """Return the asset that has an event when a table got new commits, at most so often; only validation schedules on it."""
    uri = f"lakebound://{pipeline}/validation-due"
    trigger = TableCommitsTrigger(pipeline, table, _NEVER_COMMITS, every_seconds)
    return Asset(name=uri, uri=uri, group="lakebound", watchers=[AssetWatcher(name=f"{pipeline}/validation", trigger=trigger)])
