"""The steps of maintenance that a table format has; each format has its own in ``table_steps.py`` of its folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lakebound.control.folder import ControlFolder
from lakebound.control.handover import HandOver
from lakebound.control.turns import AskForTurn
from lakebound.errors import LakeboundError
from lakebound.operations.maintenance import steps
from lakebound.spec.table import TableSpec
from lakebound.tables.formats import PerFormat
from lakebound.tables.places import Places


class WrongFormatError(LakeboundError):
    """A step is asked of a table whose format has no such thing."""

    def __init__(self, table: str, kind: str) -> None:
        super().__init__(f"table {table}: its format has no maintenance step {kind}; make a new plan")


class SparkRewriter(Protocol):
    """What rewrites files where that needs Spark: a part of ``lakebound.operations.maintenance.engines.Engine``.

    Arguments, results and errors are those of the methods there.
    """

    def compact(self, table: TableSpec, step: steps.Compact) -> steps.StepEffect:
        """Rewrite small files of one partition."""

    def rewrite_manifests(self, table: TableSpec, step: steps.RewriteManifests) -> steps.StepEffect:
        """Rewrite many manifests as few."""

    def rewrite_position_deletes(self, table: TableSpec, step: steps.RewritePositionDeletes) -> steps.StepEffect:
        """Rewrite many position delete files as few."""


class RunOfSteps:
    """What the steps of one run share.

    Args:
        control: The pipeline's folder.
        places: Where its tables are.
        start: Makes what rewrites files with Spark; called once, and only for a step that needs it.
    """

    def __init__(self, control: ControlFolder, places: Places, start: Callable[[], SparkRewriter]) -> None:
        self.control = control
        self.places = places
        self._start = start
        self._rewriter: SparkRewriter | None = None
        self._hand_overs: dict[str, HandOver] = {}

    def turn(self, table: TableSpec) -> AskForTurn:
        """Return what asks the stream to let a commit through."""
        return AskForTurn(self.control, table.id)

    def hand_over(self, table: TableSpec) -> HandOver:
        """Return the table's for the whole run: what did not take an offer is not offered the next."""
        return self._hand_overs.setdefault(table.id, HandOver(self.control, table.id))

    def rewriter(self) -> SparkRewriter:
        """Return what rewrites files with Spark."""
        if self._rewriter is None:
            self._rewriter = self._start()
        return self._rewriter


class FormatSteps:
    """The steps of one format's tables; a step that a format lacks is refused."""

    def __init__(self, run: RunOfSteps) -> None:
        self._run = run

    def compact(self, table: TableSpec, step: steps.Compact) -> steps.StepEffect:
        """Rewrite small files of one partition."""
        raise self._lacks(table, step)

    def checkpoint_log(self, table: TableSpec, step: steps.CheckpointLog) -> steps.StepEffect:
        """Write a log checkpoint."""
        raise self._lacks(table, step)

    def clean_log(self, table: TableSpec, step: steps.CleanLog) -> steps.StepEffect:
        """Delete log files that no version needs which stays readable."""
        raise self._lacks(table, step)

    def vacuum(self, table: TableSpec, step: steps.Vacuum) -> steps.StepEffect:
        """Delete files that no version within the retention needs."""
        raise self._lacks(table, step)

    def rewrite_manifests(self, table: TableSpec, step: steps.RewriteManifests) -> steps.StepEffect:
        """Rewrite many manifests as few."""
        raise self._lacks(table, step)

    def rewrite_position_deletes(self, table: TableSpec, step: steps.RewritePositionDeletes) -> steps.StepEffect:
        """Rewrite many position delete files as few."""
        raise self._lacks(table, step)

    def expire_snapshots(self, table: TableSpec, step: steps.ExpireSnapshots) -> steps.StepEffect:
        """Expire exactly the step's snapshots."""
        raise self._lacks(table, step)

    @staticmethod
    def _lacks(table: TableSpec, step: steps.MaintenanceStep) -> WrongFormatError:
        return WrongFormatError(table.id, step.kind)


STEPS: PerFormat[Callable[[RunOfSteps], FormatSteps]] = PerFormat("lakebound.operations.maintenance", "table_steps:TableSteps")
