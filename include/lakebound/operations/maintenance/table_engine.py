"""The engine for all tables of a pipeline: each step goes to its format's own; Spark starts when the first step needs it.

Of an Iceberg table that Spark cannot open, small files are rewritten without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from lakebound.control.folder import ControlFolder, files_in, modified_at
from lakebound.control.handover import HandOver, outstanding_since_ms
from lakebound.control.lease import lease_is_live, readable_lease
from lakebound.control.replay_result import ReplayResult
from lakebound.control.turns import AskForTurn
from lakebound.errors import LakeboundError
from lakebound.landing.batch_command import is_shared
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.iceberg.rewrite import FileRewriter
from lakebound.operations.maintenance.orphan_files import remove_orphans
from lakebound.operations.maintenance.steps import (
    CheckpointLog,
    CleanLog,
    Compact,
    ExpireSnapshots,
    MaintenanceStep,
    RemoveOrphans,
    RewriteManifests,
    RewritePositionDeletes,
    StepEffect,
    Vacuum,
)
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

_DEAD_REPLAY_MS = 24 * 3600 * 1000
"""A replay says how far it is after each batch."""


class WrongFormatError(LakeboundError):
    """A step is asked of a table whose format has no such thing."""

    def __init__(self, table: str, kind: str) -> None:
        super().__init__(f"table {table}: its format has no maintenance step {kind}; make a new plan")


class IcebergRewriter(Protocol):
    """What rewrites Iceberg's files: the part of ``lakebound.operations.maintenance.engines.Engine`` that needs Spark.

    Arguments, results and errors are those of the methods there.
    """

    def compact(self, table: TableSpec, step: Compact) -> StepEffect:
        """Rewrite small files of one partition."""

    def rewrite_manifests(self, table: TableSpec, step: RewriteManifests) -> StepEffect:
        """Rewrite many manifests as few."""

    def rewrite_position_deletes(self, table: TableSpec, step: RewritePositionDeletes) -> StepEffect:
        """Rewrite many position delete files as few."""


class TableEngine:
    """Carries out the steps of all tables.

    Args:
        control: The pipeline's folder.
        places: Where its tables are.
        run_id: Names the run.
        iceberg: Makes what rewrites Iceberg's files; called once, and only for a step that needs it.
    """

    def __init__(self, control: ControlFolder, places: Places, run_id: str, iceberg: Callable[[], IcebergRewriter]) -> None:
        self._control = control
        self._places = places
        self._run_id = run_id
        self._delta = DeltaEngine(places)
        self._start = iceberg
        self._iceberg: IcebergRewriter | None = None
        self._hand_overs: dict[str, HandOver] = {}
        self._file_rewriters: dict[str, FileRewriter] = {}

    def compact(self, table: TableSpec, step: Compact) -> StepEffect:
        """Rewrite small files of one partition."""
        if table.format == "delta":
            return self._delta.compact(table, step, AskForTurn(self._control, table.id), self._hand_over(table))
        if not is_shared(self._places):
            return self._files(table).compact(table, step)
        return self._rewriter().compact(table, step)

    def checkpoint_log(self, table: TableSpec, step: CheckpointLog) -> StepEffect:
        """Write a log checkpoint."""
        return self._delta.checkpoint_log(_of(table, "delta", step), step)

    def clean_log(self, table: TableSpec, step: CleanLog) -> StepEffect:
        """Delete log files that no version needs which stays readable."""
        return self._delta.clean_log(_of(table, "delta", step), step)

    def vacuum(self, table: TableSpec, step: Vacuum) -> StepEffect:
        """Delete files that no version within the retention needs."""
        return self._delta.vacuum(_of(table, "delta", step), step)

    def rewrite_manifests(self, table: TableSpec, step: RewriteManifests) -> StepEffect:
        """Rewrite many manifests as few."""
        return self._rewriter().rewrite_manifests(_of(table, "iceberg", step), step)

    def rewrite_position_deletes(self, table: TableSpec, step: RewritePositionDeletes) -> StepEffect:
        """Rewrite many position delete files as few."""
        return self._rewriter().rewrite_position_deletes(_of(table, "iceberg", step), step)

    def expire_snapshots(self, table: TableSpec, step: ExpireSnapshots) -> StepEffect:
        """Expire exactly the step's snapshots."""
        turn = AskForTurn(self._control, table.id)
        return expire(_of(table, "iceberg", step), step, self._places, turn, self._hand_over(table))

    def remove_orphans(self, table: TableSpec, step: RemoveOrphans) -> StepEffect:
        """Find files that no version names, and move them aside where the step says so."""
        bound = staged_before_ms(table, self._places, self._control, int(time.time() * 1000))
        return remove_orphans(table, step, self._places, self._run_id, bound)

    def _hand_over(self, table: TableSpec) -> HandOver:
        """Return the table's for the whole run: what did not take an offer is not offered the next."""
        return self._hand_overs.setdefault(table.id, HandOver(self._control, table.id))

    def _files(self, table: TableSpec) -> FileRewriter:
        """Return the table's for the whole run: it knows the manifests that it has read."""
        return self._file_rewriters.setdefault(table.id, FileRewriter(self._places, self._control))

    def _rewriter(self) -> IcebergRewriter:
        if self._iceberg is None:
            self._iceberg = self._start()
        return self._iceberg


def staged_before_ms(table: TableSpec, places: Places, control: ControlFolder, now_ms: int) -> int:
    """Return the time after which a running writer may have written files that it has yet to commit.

    The stream commits a batch before it writes the next: what is older than its newest commit it will not commit any more. Of a
    replay only its start is known, and of what maintenance has handed to the stream when its making began. Without any of
    them it is now.

    Args:
        table: Table whose folder is searched for orphan files.
        places: Where this machine keeps tables and state folders.
        control: State folder of the pipeline; its lease and its replays tell who writes.
        now_ms: Epoch milliseconds of this look.
    """
    bound = now_ms
    lease = readable_lease(control)
    if lease is not None and lease_is_live(control, lease, now_ms / 1000):
        since_ms = int(lease.acquired_at * 1000)
        opened = open_table(table, places)
        newest = next((one for one in opened.entries() if one.entry.kind != "carry"), None) if opened.exists() else None
        bound = max(since_ms, newest.committed_at_ms) if newest is not None else since_ms
    prepared_ms = outstanding_since_ms(control, table.id, now_ms)
    bound = bound if prepared_ms is None else min(bound, prepared_ms)
    for file in files_in(control.replays, "*.json"):
        replay = ReplayResult.model_validate_json(file.read_text())
        silent_ms = now_ms - modified_at(file) * 1000
        if replay.ended_at is None and silent_ms < _DEAD_REPLAY_MS:
            bound = min(bound, int(replay.started_at * 1000))
    return bound


def _of(table: TableSpec, wanted: str, step: MaintenanceStep) -> TableSpec:
    if table.format != wanted:
        raise WrongFormatError(table.id, step.kind)
    return table
