"""A stream in small in a process of its own, which tells each commit that is over.

``python -m tests.support.power.writer FOLDER FORMAT`` runs until it is killed, or until its disk is gone.
With a third argument it never syncs, for a test that shows what is lost then.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.ledger.entry import missing
from lakebound.operations.maintenance.delta import engine as delta_engine
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.steps import CleanLog, ExpireSnapshots, Vacuum
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound.tables.table import open_table
from tests.support.power.stories import TABLES
from tests.support.tables.local_tables import PIPELINE, SCHEMA, Lander, genesis, offsets, places
from tests.support.tables.maintained import compaction

PER_COMMIT = 3
MAINTAINED_EVERY = 6
TOLD = "told: "
"""Begins the lines that are no log."""


def stream(spec: TableSpec, at: Places) -> None:
    """Start as an application does, land what is missing, and go on until the process ends."""
    table = open_table(spec, at)
    if not table.exists():
        table.create(SCHEMA, genesis())
    view = table.read_ledger()
    app = Lander(table, view, view.epoch + 1)
    app.open()
    _tell(0)
    held = app.view.coverage
    next_ = max((end for topic in held.values() for _, end in topic.partitions[0]), default=0)
    assert not missing(offsets(0, next_), held)
    for number in itertools.count(1):
        app.land(next_, next_ + PER_COMMIT)
        table.keep_cheap()
        next_ += PER_COMMIT
        _tell(next_)
        if number % MAINTAINED_EVERY == 0:
            _maintain(spec, at)
            app.view = table.read_ledger()


def _maintain(spec: TableSpec, at: Places) -> None:
    if spec.format == "iceberg":
        ids = tuple(int(version.version) for version in open_table(spec, at).history().versions())
        turn = AskForTurn(ControlFolder(at.home, PIPELINE), spec.id)
        expire(spec, ExpireSnapshots(table=spec.id, reason="a test", snapshot_ids=ids), at, turn)
        return
    engine = delta_engine.DeltaEngine(at)
    engine.compact(spec, compaction(spec))
    time.sleep(0.002)  # the retention is none, the clock's unit a millisecond
    engine.vacuum(spec, Vacuum(table=spec.id, reason="a test", mode="lite", retention_seconds=0))
    newest = int(next(iter(open_table(spec, at).history().versions())).version)
    try:
        engine.clean_log(spec, CleanLog(table=spec.id, reason="a test", before_version=newest))
    except delta_engine.LogNotCleanableError:
        return  # no checkpoint since, or the newest entry is a carried one


def _tell(end: int) -> None:
    print(f"{TOLD}{end}", flush=True)


if __name__ == "__main__":
    delta_engine._MIN_REMOVED_HOURS = 0
    if len(sys.argv) > 3:
        os.fsync = lambda _: None  # type: ignore[assignment]
    stream(TABLES[sys.argv[2]], places(Path(sys.argv[1])))
