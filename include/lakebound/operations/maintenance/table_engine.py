"""The engine for all tables of a pipeline: each step goes to its format's own; Spark starts when the first step needs it."""

from __future__ import annotations

import time
from collections.abc import Callable

from lakebound.control.folder import ControlFolder, files_in, modified_at
from lakebound.control.handover import outstanding_since_ms
from lakebound.control.lease import lease_is_live, readable_lease
from lakebound.control.replay_result import ReplayResult
from lakebound.operations.maintenance import steps
from lakebound.operations.maintenance.format_steps import STEPS, FormatSteps, RunOfSteps, SparkRewriter
from lakebound.operations.maintenance.orphan_files import remove_orphans
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table

_DEAD_REPLAY_MS = 24 * 3600 * 1000
"""A replay says how far it is after each batch."""


class TableEngine:
    """Carries out the steps of all tables.

    Args:
        control: The pipeline's folder.
        places: Where its tables are.
        run_id: Names the run.
        start: Makes what rewrites files with Spark; called once, and only for a step that needs it.
    """

    def __init__(self, control: ControlFolder, places: Places, run_id: str, start: Callable[[], SparkRewriter]) -> None:
        self._control = control
        self._places = places
        self._run_id = run_id
        self._run = RunOfSteps(control, places, start)
        self._formats: dict[str, FormatSteps] = {}

    def compact(self, table: TableSpec, step: steps.Compact) -> steps.StepEffect:
        """Rewrite small files of one partition."""
        return self._steps(table).compact(table, step)

    def checkpoint_log(self, table: TableSpec, step: steps.CheckpointLog) -> steps.StepEffect:
        """Write a log checkpoint."""
        return self._steps(table).checkpoint_log(table, step)

    def clean_log(self, table: TableSpec, step: steps.CleanLog) -> steps.StepEffect:
        """Delete log files that no version needs which stays readable."""
        return self._steps(table).clean_log(table, step)

    def vacuum(self, table: TableSpec, step: steps.Vacuum) -> steps.StepEffect:
        """Delete files that no version within the retention needs."""
        return self._steps(table).vacuum(table, step)

    def rewrite_manifests(self, table: TableSpec, step: steps.RewriteManifests) -> steps.StepEffect:
        """Rewrite many manifests as few."""
        return self._steps(table).rewrite_manifests(table, step)

    def rewrite_position_deletes(self, table: TableSpec, step: steps.RewritePositionDeletes) -> steps.StepEffect:
        """Rewrite many position delete files as few."""
        return self._steps(table).rewrite_position_deletes(table, step)

    def expire_snapshots(self, table: TableSpec, step: steps.ExpireSnapshots) -> steps.StepEffect:
        """Expire exactly the step's snapshots."""
        return self._steps(table).expire_snapshots(table, step)

    def remove_orphans(self, table: TableSpec, step: steps.RemoveOrphans) -> steps.StepEffect:
        """Find files that no version names, and move them aside where the step says so."""
        bound = staged_before_ms(table, self._places, self._control, int(time.time() * 1000))
        return remove_orphans(table, step, self._places, self._run_id, bound)

    def _steps(self, table: TableSpec) -> FormatSteps:
        if table.format not in self._formats:
            self._formats[table.format] = STEPS.of(table.format)(self._run)
        return self._formats[table.format]


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
