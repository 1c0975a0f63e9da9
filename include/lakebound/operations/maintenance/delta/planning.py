"""What a plan may hold for a Delta table, and how long it lets versions be read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from lakebound.control.bounds import LAST_MOMENT
from lakebound.control.table_history import Grain
from lakebound.operations.maintenance.delta.kept_log import clean_before, vacuum_retention_seconds
from lakebound.operations.maintenance.delta.property_warnings import warnings
from lakebound.operations.maintenance.history import TablePast
from lakebound.operations.maintenance.planning_rules import PlannedTable, PlanningRules
from lakebound.operations.maintenance.steps import CheckpointLog, CleanLog, Compact, MaintenanceStep, Vacuum
from lakebound.operations.maintenance.wording import age_seconds, ago, count_words
from lakebound.spec.maintenance import DAY_SECONDS, HOUR_SECONDS, HistorySpec, MaintenanceSpec
from lakebound.tables.delta.durations import LOG, explicit_ms
from lakebound.tables.health import MetadataFacts, TableFacts

_MIN_CLEANED_COMMITS = 50
"""The streams write a log checkpoint so often, and the log is cut off at one."""


class DeltaPlanning(PlanningRules):
    """The rules of Delta."""

    orders_whole_partitions: ClassVar[bool] = True
    joins_neighbours: ClassVar[bool] = True
    ends_by: ClassVar[str] = "VACUUM"

    def not_compacted(self, facts: TableFacts) -> str:
        """Return why no file is rewritten: files may hold other rows, or columns, than the table."""
        vectors = facts.properties.get("delta.enableDeletionVectors", "false").strip().lower()
        if vectors != "true" and facts.properties.get("delta.columnMapping.mode", "none").strip().lower() == "none":
            return ""
        return "not compacted, as deletion vectors or column mapping are switched on"

    def metadata_parts(self, metadata: MetadataFacts) -> str:
        """Return how many commits come after the last log checkpoint."""
        return count_words(metadata.log_tail_commits, "commit") + " in the tail"

    def after(self, table: PlannedTable, compactions: Sequence[Compact]) -> Iterator[MaintenanceStep]:
        """Yield the log checkpoint, VACUUM and the log's clean-up."""
        facts, past, policy = table.facts, table.past, table.policy
        tail = facts.metadata.log_tail_commits
        if tail > policy.max_log_tail_commits:
            reason = f"{tail:,} commits since the last log checkpoint, more than {policy.max_log_tail_commits:,}"
            yield CheckpointLog(table=facts.table, reason=reason, files_removed=0)
        if not past.problems:
            yield from _vacuum(table, is_compacted=bool(compactions))
        before = clean_before(past, policy.history, facts.properties, table.now_ms)
        cleaned = 0 if before is None else sum(version.version < before for version in past.versions)
        if before is not None and cleaned >= _MIN_CLEANED_COMMITS:
            reason = f"{cleaned:,} of {len(past.versions):,} commits in the log are older than what is kept"
            yield CleanLog(table=facts.table, reason=reason, before_version=before, files_removed=cleaned)

    def shown_for_seconds(self, table: str, policy: MaintenanceSpec, properties: Mapping[str, str], now_ms: int) -> float:
        """Return for how long VACUUM leaves files."""
        return vacuum_retention_seconds(TablePast(table=table), policy, properties, now_ms, is_full=False)

    def grains(self, policy: HistorySpec, properties: Mapping[str, str]) -> tuple[Grain, ...]:
        """Return that all versions are kept, as long as the log is."""
        # A table's own property is bounded by nobody.
        return (Grain(min(LAST_MOMENT, max(policy.keep_delta_seconds, (explicit_ms(properties, LOG) or 0) / 1000))),)

    def warnings(self, properties: Mapping[str, str], policy: MaintenanceSpec) -> Iterator[str]:
        """Yield a sentence for each dangerous property."""
        return warnings(properties, policy)


RULES = DeltaPlanning()


def _vacuum(table: PlannedTable, *, is_compacted: bool) -> Iterator[MaintenanceStep]:
    """Yield a VACUUM: FULL each week, else LITE each hour in which files were rewritten, and each day.

    Where orphans are moved aside before they are deleted, FULL is never due: it would delete them at once.
    """
    facts, past, runs, policy, now_ms = table.facts, table.past, table.runs, table.policy, table.now_ms
    since_full, since = age_seconds(runs.vacuumed_full_at_ms, now_ms), age_seconds(runs.vacuumed_at_ms, now_ms)
    is_full = since_full >= policy.vacuum_full_every_seconds and policy.orphans.mode != "quarantine"
    if is_full:
        reason = "never done in full" if runs.vacuumed_full_at_ms is None else f"last done in full {ago(since_full)} ago"
    elif facts.metadata.tombstones and since >= (HOUR_SECONDS if is_compacted else DAY_SECONDS):
        reason = f"{count_words(facts.metadata.tombstones, 'removed file')} in the log"
    else:
        return
    seconds = vacuum_retention_seconds(past, policy, facts.properties, now_ms, is_full=is_full)
    reason += f"; what was removed in the last {ago(seconds)} stays"
    yield Vacuum(table=facts.table, reason=reason, mode="full" if is_full else "lite", retention_seconds=seconds)
