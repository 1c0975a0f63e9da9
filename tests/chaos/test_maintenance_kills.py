"""Maintenance killed at random moments, again and again, beside a writer: nothing is lost, and a later run completes.

In the long form alone: in the short one tests/spark/test_maintenance_application.py kills it in the middle of its work, and
test_maintenance_actions.py has a writer beside it. LAKEBOUND_CHAOS_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.support.streams.long_form import only_in_long_form
from tests.support.tables.local_tables import landed_offsets, lander, make_table
from tests.support.tables.maintained import content, live_files_of, maintained_pipeline, maintained_settings
from tests.support.waiting import HANGS_SECONDS

from lakebound.control.folder import ControlFolder
from lakebound.landing.spark_command import spark_environment
from lakebound.operations.maintenance.orphan_files import remove_orphans
from lakebound.operations.maintenance.past_reading import read_runs
from lakebound.operations.maintenance.steps import RemoveOrphans
from lakebound.operations.maintenance.submission import maintenance_command, maintenance_orders
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import open_table

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800), only_in_long_form]

KILLS = 10
LONGEST_SECONDS = 30.0
"""A run takes about so long on two busy cores; kills are spread over all of it."""

RUN_SECONDS = 300.0
ALWAYS_DUE = {
    "compaction": {"hot_seconds": 0, "min_small_files": 5, "min_files_removed": 1},
    "cooldown_seconds": 0,
    "max_manifests": 2,
    "max_log_tail_commits": 5,
    "history": {"keep_delta_seconds": 60, "keep_all_seconds": 60, "keep_minutely_seconds": 0, "keep_hourly_seconds": 0},
}


class Writer:
    """Commits a few rows to each table, all the time, as a stream does."""

    def __init__(self, tables: tuple[TableSpec, ...], at: Places) -> None:
        self._landers = [lander(table, at) for table in tables]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.landed = 0
        self.problem: BaseException | None = None

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _write(self) -> None:
        try:
            while not self._ended.wait(0.2):
                for app in self._landers:
                    app.attempts = 20
                    app.land(self.landed, self.landed + 3)
                self.landed += 3
        except BaseException as exc:
            self.problem = exc


def test_maintenance_that_is_killed_anywhere_loses_nothing(tmp_path: Path) -> None:
    seed = int(os.environ.get("LAKEBOUND_CHAOS_SEED", time.time_ns() % 1_000_000))
    print(f"LAKEBOUND_CHAOS_SEED={seed}", flush=True)
    dice = random.Random(seed)
    settings = maintained_settings(tmp_path)
    spec, at = maintained_pipeline(ALWAYS_DUE), places_of(settings, "default")
    for table in spec.tables:
        make_table(table, at)
    with Writer(spec.tables, at) as writer:
        for number in range(KILLS):
            run(spec, settings, f"killed-{number}", kill_after_seconds=dice.uniform(1.0, LONGEST_SECONDS))
            assert writer.problem is None, writer.problem
    for table in spec.tables:
        assert landed_offsets(open_table(table, at)) == list(range(writer.landed)), f"{table.id} after {KILLS} kills"
    before = {table.id: content(table, at) for table in spec.tables}

    assert run(spec, settings, "last") == 0
    control = ControlFolder(settings.home, spec.pipeline)
    (report,) = [found for found in read_runs(control) if found.run_id == "last"]
    assert not [step for step in report.steps if step.outcome == "failed"], report
    assert {table.id: content(table, at) for table in spec.tables} == before
    assert all(live_files_of(table, at) <= 2 for table in spec.tables)
    assert open_table(spec.tables[0], at).read_ledger().coverage == open_table(spec.tables[1], at).read_ledger().coverage
    for table in spec.tables:
        moved = orphans_moved(table, at, "found later")
        assert orphans_moved(table, at, "once more") == 0, f"{moved} orphans were moved, and others are left"
    assert {table.id: content(table, at) for table in spec.tables} == before


def orphans_moved(table: TableSpec, at: Places, run_id: str) -> int:
    """Move aside what no version names, however young, now that nobody writes; return how many files."""
    now_ms = time.time_ns() // 1_000_000 + 1000
    step = RemoveOrphans(
        table=table.id, reason="a test", mode="quarantine", older_than_ms=now_ms, delete_quarantined_before_ms=0
    )
    return remove_orphans(table, step, at, run_id, now_ms).files_before


def run(spec: PipelineSpec, settings: Settings, run_id: str, *, kill_after_seconds: float | None = None) -> int:
    """Run maintenance to its end, or until it is killed with all that it started; return its exit code."""
    # Behind everything else it would starve beside other tests.
    command = maintenance_command(maintenance_orders(spec, settings, run_id, is_waited_for=True), settings)
    with (settings.home / f"{run_id}.log").open("w") as log:
        process = subprocess.Popen(command, env=spark_environment(settings), stdout=log, stderr=log, start_new_session=True)
        try:
            return process.wait(RUN_SECONDS if kill_after_seconds is None else kill_after_seconds)
        except subprocess.TimeoutExpired:
            assert kill_after_seconds is not None, (settings.home / f"{run_id}.log").read_text()[-3000:]
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait(HANGS_SECONDS)
