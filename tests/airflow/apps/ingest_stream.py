"""Stands in for the landing application: same lease, progress, requests and outcome; no Kafka, no tables, no session.

``behaviour.json`` in the pipeline's folder may hold ``fail_after_seconds``, ``die_after_seconds``, ``refuse`` and
``complete_after_seconds``, ``rows`` (rows per second that it claims to have landed; 10 unless told), ``is_real`` (the real
application runs in its place).
"""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from lakebound.control.desired import read_desired
from lakebound.control.folder import read_json
from lakebound.control.lease import acquire, release, renew
from lakebound.control.progress import EndVerdict, Outcome, Progress, TableProgress, write_outcome, write_progress
from lakebound.landing.run_spec import RunSpec
from lakebound.landing.trace import BatchSpans, Span, append_spans

REAL = Path(__file__).parents[3] / "spark_apps" / "ingest_stream.py"
TICK_SECONDS = 0.2


def write_trace(run: RunSpec) -> None:
    """Write one span, if the run is to be traced."""
    if run.trace:
        span = Span(step="addBatch", began_ms=0.0, milliseconds=50.0)
        append_spans(run.control.trace(run.app_id), BatchSpans(batch=1, track="Spark", spans=(span,)))


def log_refusal(run: RunSpec) -> None:
    """Log a traceback as the application does."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        raise RuntimeError("told to refuse")
    except RuntimeError:
        logging.exception("pipeline %s is refused", run.spec.pipeline)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--run-spec", required=True)
    run = RunSpec.model_validate_json(parser.parse_args().run_spec)
    behaviour = read_json(run.control.folder / "behaviour.json") or {}
    if behaviour.get("is_real"):
        runpy.run_path(str(REAL), run_name="__main__")
    return stand_in(run, behaviour)


def stand_in(run: RunSpec, behaviour: dict[str, Any]) -> int:
    control, started = run.control, time.time()
    asked, parent = threading.Event(), os.getppid()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    print(f"fake application {run.app_id} starts", flush=True)

    def end(verdict: EndVerdict, reason: str, commits: int = 0) -> int:
        print(f"{verdict}: {reason}", flush=True)
        outcome = Outcome(
            app_id=run.app_id,
            verdict=verdict,
            reason=reason,
            commits=commits,
            started_at=started,
            ended_at=time.time(),
            **behaviour.get("counts", {}),
        )
        write_outcome(control, outcome)
        return 0 if verdict in ("stopped", "completed") else 1

    write_trace(run)
    if behaviour.get("refuse"):
        log_refusal(run)
        return end("refused", str(behaviour["refuse"]))
    lease = acquire(control, run.app_id, run.spec.limits.lease_ttl_seconds)
    commits = 0
    try:
        while True:
            time.sleep(TICK_SECONDS)
            age = time.time() - started
            lease = renew(control, lease)
            rows = int(age * behaviour.get("rows", 10))
            commits = commits + 1 if rows else 0
            table = TableProgress(version=str(commits), committed_at=time.time(), commits=commits, rows=rows)
            write_progress(
                control,
                Progress(
                    pipeline=run.spec.pipeline,
                    app_id=run.app_id,
                    epoch=lease.epoch,
                    generation=run.generation,
                    source_hash=run.source_hash,
                    state="running",
                    started_at=started,
                    updated_at=time.time(),
                    records=rows,
                    tables={target.id: table for target in run.spec.tables},
                ),
            )
            if age > behaviour.get("die_after_seconds", float("inf")):
                os._exit(9)
            if age > behaviour.get("fail_after_seconds", float("inf")):
                print("ERROR the fake application was told to fail", flush=True)
                return end("failed", "told to fail", commits)
            if age > behaviour.get("complete_after_seconds", float("inf")):
                return end("completed", "nothing more to read", commits)
            if os.getppid() != parent:
                return end("failed", "the JVM is gone", commits)
            desired = read_desired(control)
            if asked.is_set() or control.stop_marker(run.app_id).exists() or not desired.wants_app:
                return end("stopped", "asked to stop", commits)
            if desired.generation > run.generation:
                return end("stopped", f"generation {desired.generation} is wanted", commits)
    finally:
        release(control, lease)


if __name__ == "__main__":
    sys.exit(main())
