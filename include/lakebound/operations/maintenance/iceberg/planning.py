"""What a plan may hold for an Iceberg table, and how long it lets versions be read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from lakebound.control.table_history import Grain
from lakebound.operations.maintenance.iceberg.kept_snapshots import expirable
from lakebound.operations.maintenance.iceberg.property_warnings import horizon_seconds, warnings
from lakebound.operations.maintenance.planning_rules import PlannedTable, PlanningRules
from lakebound.operations.maintenance.steps import (
    Compact,
    ExpireSnapshots,
    MaintenanceStep,
    RewriteManifests,
    RewritePositionDeletes,
)
from lakebound.operations.maintenance.wording import count_words
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec
from lakebound.tables.health import MetadataFacts, TableFacts


class IcebergPlanning(PlanningRules):
    """The rules of Iceberg."""

    rewrites_deletes: ClassVar[bool] = True
    ends_by: ClassVar[str] = "snapshot expiry"

    def metadata_parts(self, metadata: MetadataFacts) -> str:
        """Return how many manifests there are."""
        return count_words(metadata.manifests, "manifest")

    def before(self, table: PlannedTable) -> Iterator[MaintenanceStep]:
        """Yield the expiry of snapshots, which comes first: each commit after it writes a shorter list of them."""
        facts, past, policy = table.facts, table.past, table.policy
        ids = expirable(past, policy.history, facts.properties, table.now_ms)
        if ids:
            reason = f"maintenance.history no longer keeps {len(ids):,} of {count_words(len(past.versions), 'snapshot')}"
            yield ExpireSnapshots(table=facts.table, reason=reason, snapshot_ids=ids, files_removed=len(ids))

    def by_spark(self, facts: TableFacts, policy: MaintenanceSpec, compactions: Sequence[Compact]) -> Iterator[MaintenanceStep]:
        """Yield what follows the rewriting of data files: each step has less to do after the one before it."""
        deletes = sum(partition.delete_files for partition in facts.partitions)
        dangling = facts.metadata.dangling_delete_files
        if deletes > policy.compaction.max_delete_files or dangling or any(step.with_deletes for step in compactions):
            reason = count_words(deletes + dangling, "delete file")
            reason += f", {dangling:,} of them without a data file to delete from" if dangling else ""
            yield RewritePositionDeletes(table=facts.table, reason=reason, files_removed=dangling)
        if facts.metadata.manifests > policy.max_manifests:
            manifests = facts.metadata.manifests
            reason = f"{manifests:,} manifests, more than {policy.max_manifests:,} (max_manifests)"
            yield RewriteManifests(table=facts.table, reason=reason, files_removed=manifests - 1)

    def shown_for_seconds(self, table: str, policy: MaintenanceSpec, properties: Mapping[str, str], now_ms: int) -> float:
        """Return for how long snapshots are promised to be there."""
        return horizon_seconds(policy.history)

    def grains(self, policy: HistorySpec, properties: Mapping[str, str]) -> tuple[Grain, ...]:
        """Return that ever fewer of the older snapshots are kept."""
        return (
            Grain(policy.keep_all_seconds, 1.0),
            Grain(policy.keep_minutely_seconds, 60.0),
            Grain(policy.keep_hourly_seconds, 3600.0),
        )

    def warnings(self, properties: Mapping[str, str], policy: MaintenanceSpec) -> Iterator[str]:
        """Yield a sentence for each dangerous property."""
        return warnings(properties, policy)


RULES = IcebergPlanning()
