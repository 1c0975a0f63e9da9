"""The steps of maintenance of a Delta table."""

from __future__ import annotations

from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.format_steps import FormatSteps, RunOfSteps
from lakebound.operations.maintenance.steps import CheckpointLog, CleanLog, Compact, StepEffect, Vacuum
from lakebound.spec.table import TableSpec


class TableSteps(FormatSteps):
    """Carries out the steps; none of them needs Spark."""

    def __init__(self, run: RunOfSteps) -> None:
        super().__init__(run)
        self._engine = DeltaEngine(run.places)

    def compact(self, table: TableSpec, step: Compact) -> StepEffect:
        """Rewrite small files of one partition."""
        return self._engine.compact(table, step, self._run.turn(table), self._run.hand_over(table))

    def checkpoint_log(self, table: TableSpec, step: CheckpointLog) -> StepEffect:
        """Write a log checkpoint."""
        return self._engine.checkpoint_log(table, step)

    def clean_log(self, table: TableSpec, step: CleanLog) -> StepEffect:
        """Delete log files that no version needs which stays readable."""
        return self._engine.clean_log(table, step)

    def vacuum(self, table: TableSpec, step: Vacuum) -> StepEffect:
        """Delete files that no version within the retention needs."""
        return self._engine.vacuum(table, step)
