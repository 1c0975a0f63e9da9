"""How long maintenance lets older versions of a Delta table show their rows."""

from __future__ import annotations

from collections.abc import Mapping

from lakebound.control.bounds import LAST_MOMENT
from lakebound.control.table_history import Grain
from lakebound.operations.maintenance.delta.kept_log import vacuum_retention_seconds
from lakebound.operations.maintenance.history import TablePast
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec
from lakebound.tables.delta.durations import LOG, explicit_ms

ENDS_BY = "VACUUM"
"""The step that takes them away."""


def shown_for_seconds(table: str, policy: MaintenanceSpec, properties: Mapping[str, str], now_ms: int) -> float:
    """Return for how long; a registered reader may need an older version.

    Args:
        table: Id of the table.
        policy: The pipeline's maintenance.
        properties: The table's own.
        now_ms: Epoch milliseconds.
    """
    return vacuum_retention_seconds(TablePast(table=table), policy, properties, now_ms, is_full=False)


def grains(policy: HistorySpec, properties: Mapping[str, str]) -> tuple[Grain, ...]:
    """Return how many versions are kept for how long: all of them, as long as the log is.

    Args:
        policy: What the pipeline keeps.
        properties: The table's own.
    """
    # A table's own property is bounded by nobody.
    return (Grain(min(LAST_MOMENT, max(policy.keep_delta_seconds, (explicit_ms(properties, LOG) or 0) / 1000))),)
