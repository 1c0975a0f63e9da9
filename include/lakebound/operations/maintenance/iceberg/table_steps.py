"""The steps of maintenance of an Iceberg table. Where Spark cannot open it, small files are rewritten without Spark."""

from __future__ import annotations

from lakebound.landing.batch_command import is_shared
from lakebound.operations.maintenance.format_steps import FormatSteps, RunOfSteps
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.operations.maintenance.steps import (
    Compact,
    ExpireSnapshots,
    RewriteManifests,
    RewritePositionDeletes,
    StepEffect,
)
from lakebound.spec.table import TableSpec


class TableSteps(FormatSteps):
    """Carries out the steps."""

    def __init__(self, run: RunOfSteps) -> None:
        super().__init__(run)
        self._rewriters: dict[str, FileRewriter] = {}

    def compact(self, table: TableSpec, step: Compact) -> StepEffect:
        """Rewrite small files of one partition."""
        if not is_shared(self._run.places):
            return self._files(table).compact(table, step)
        return self._run.rewriter().compact(table, step)

    def rewrite_manifests(self, table: TableSpec, step: RewriteManifests) -> StepEffect:
        """Rewrite many manifests as few."""
        return self._run.rewriter().rewrite_manifests(table, step)

    def rewrite_position_deletes(self, table: TableSpec, step: RewritePositionDeletes) -> StepEffect:
        """Rewrite many position delete files as few."""
        return self._run.rewriter().rewrite_position_deletes(table, step)

    def expire_snapshots(self, table: TableSpec, step: ExpireSnapshots) -> StepEffect:
        """Expire exactly the step's snapshots."""
        return expire(table, step, self._run.places, self._run.turn(table), self._run.hand_over(table))

    def _files(self, table: TableSpec) -> FileRewriter:
        """Return the table's for the whole run: it knows the manifests that it has read."""
        return self._rewriters.setdefault(table.id, FileRewriter(self._run.places, self._run.control))
