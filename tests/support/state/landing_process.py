"""An application in small, as a process: the real lease, signs of life and commits, on a made-up source of numbered records.

It lands offsets from where the table's ledger ends, a batch every fifth of a second, until it is asked to end.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial

from lakebound.control.desired import keep_desired
from lakebound.control.lease import acquire, release
from lakebound.control.progress import Outcome, write_outcome
from lakebound.landing.ledger_recorder import LedgerRecorder
from lakebound.landing.rollup_recorder import RollupRecorder
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.ledger.entry import high_water_marks
from lakebound.spec.table import TableSpec
from lakebound.tables.outages import is_outage
from lakebound.tables.table import open_table
from lakebound_spark.stream.ending import write_down
from lakebound_spark.stream.signs import ProgressBoard, SignsOfLife
from lakebound_spark.stream.stop_signal import StopSignal
from tests.support.tables.local_tables import TOPIC, Lander

BATCH = 50


def main() -> int:
    """Run until the stop signal, and write the outcome."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-spec", required=True)
    run = RunSpec.model_validate_json(parser.parse_args().run_spec)
    spec: TableSpec = run.spec.tables[0]
    table, stop, started = open_table(spec, run.places), StopSignal(), time.time()
    lease = acquire(run.control, run.app_id, run.spec.limits.lease_ttl_seconds, above_epoch=table.read_ledger().epoch)
    keep_desired(run.control)
    lander = Lander(table, table.read_ledger(), epoch=lease.epoch)
    lander.open()
    board = ProgressBoard(run, lease.epoch)
    board.change(state="running")
    signs = SignsOfLife(
        run, lease, board, stop, RollupRecorder(run.control), LedgerRecorder(run.control), SampleRecorder(run.control, 0)
    )
    signs.start()
    while not stop.is_set():
        start = high_water_marks(lander.view.coverage).get(TOPIC, {}).get(0, 0)
        lander.land(start, start + BATCH)
        board.change(records=start + BATCH, high_water_marks={TOPIC: {0: start + BATCH}})
        stop.wait(0.2)
    request = stop.request
    assert request is not None
    print(request, flush=True)
    signs.end()
    error = request.error
    outcome = Outcome(
        app_id=run.app_id,
        verdict=request.verdict,
        reason=request.reason,
        error_class=type(error).__name__ if error is not None else None,
        passes=is_outage(error),
        commits=1,
        started_at=started,
        ended_at=time.time(),
    )
    try:
        write_down(partial(write_outcome, run.control, outcome), run.control, stop.signalled)
        release(run.control, lease)
    except OSError as exc:
        print(f"the end was not written down: {exc}", flush=True)
    return 0 if request.verdict == "stopped" else 1


if __name__ == "__main__":
    sys.exit(main())
