"""How long maintenance lets older snapshots of an Iceberg table show their rows."""

from __future__ import annotations

from collections.abc import Mapping

from lakebound.control.table_history import Grain
from lakebound.operations.maintenance.iceberg.property_warnings import horizon_seconds
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec

ENDS_BY = "snapshot expiry"
"""The step that takes them away."""


def shown_for_seconds(table: str, policy: MaintenanceSpec, properties: Mapping[str, str], now_ms: int) -> float:
    """Return for how long; a registered reader or a tag may need an older snapshot.

    Args:
        table: Id of the table.
        policy: The pipeline's maintenance.
        properties: The table's own.
        now_ms: Epoch milliseconds.
    """
    return horizon_seconds(policy.history)


def grains(policy: HistorySpec, properties: Mapping[str, str]) -> tuple[Grain, ...]:
    """Return how many snapshots are kept for how long: ever fewer of the older ones.

    Args:
        policy: What the pipeline keeps.
        properties: The table's own.
    """
    return (
        Grain(policy.keep_all_seconds, 1.0),
        Grain(policy.keep_minutely_seconds, 60.0),
        Grain(policy.keep_hourly_seconds, 3600.0),
    )
