"""Makes the class archive: an application lands a few records, and its JVM writes down at its end what it loaded.

``python -m lakebound.local.training_run`` takes about a minute, once per environment; with the archive every
application starts some ten seconds earlier.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from lakebound.control.desired import Desired
from lakebound.control.processes import last_lines
from lakebound.errors import LakeboundError, ServiceError
from lakebound.landing.class_archive import class_archive
from lakebound.landing.kafka_settings import client_config
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_command import QUICK_START, spark_environment, spark_submit_command
from lakebound.local import stack
from lakebound.local.produce import Feed, produce
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec

TRAINING_DEADLINE_SECONDS = 240.0

# Two batches, one through each lane, into both formats.
_RECORDS = 500
_PIPELINE = {
    "pipeline": "training",
    "topics": ["orders"],
    "value": {"format": "json", "schema": "order_id STRING, items ARRAY<STRUCT<sku: STRING, quantity: INT>>"},
    "freshness": "available_now",
    "tables": [{"format": "delta", "name": "training.orders"}, {"format": "iceberg", "name": "training.orders"}],
    "limits": {"max_records_per_batch": 400},
    "driver_lane": {"max_rows": 200},
}


def make_class_archive(settings: Settings) -> float:
    """Make the archive, whatever was there before; return the seconds that it took.

    Raises:
        LakeboundError: The broker did not start, or the application did not end well.
    """
    started = time.monotonic()
    archive = class_archive(settings.jars)
    shutil.rmtree(archive.parent, ignore_errors=True)  # those of other jars, some 200 MB each
    archive.parent.mkdir(parents=True)
    draft = archive.with_suffix(f".{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory(prefix="lakebound-training-") as folder:
            home = Path(folder)
            options = f"{QUICK_START} -XX:ArchiveClassesAtExit={draft}"
            own = replace(settings, home=home, warehouse=home / "warehouse", spark_master="local[2]", jvm_options=options)
            broker = stack.broker_of(own)
            try:
                broker.start()
                _land(replace(own, kafka=broker.bootstrap_servers))
            finally:
                broker.stop()
        os.replace(draft, archive)
    finally:
        draft.unlink(missing_ok=True)
    return time.monotonic() - started


def _land(settings: Settings) -> None:
    spec = PipelineSpec.model_validate({**_PIPELINE, "connection": {"bootstrap_servers": settings.kafka}})
    stack.create_topics(settings.kafka, {"orders": 1})
    produce(client_config(spec.connection), [Feed("orders", 0, count=_RECORDS)], 30.0, say=lambda line: None)
    run_spec = make_run_spec(spec, settings, Desired(), "training")
    log = settings.home / "training.log"
    with log.open("wb") as output:
        code = subprocess.run(
            spark_submit_command(run_spec, settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=spark_environment(settings),
            cwd=settings.home,
            timeout=TRAINING_DEADLINE_SECONDS,
            check=False,
        ).returncode
    if code:
        raise ServiceError("class archive", f"the application ended with {code}: {last_lines(log)}")


def main() -> int:
    """Make the archive unless it exists; a failure is only printed, because it only costs time."""
    settings = load_settings()
    archive = class_archive(settings.jars)
    if archive.exists():
        return 0
    print("class archive: it is made now, once, by an application that lands a few records (about a minute)", flush=True)
    try:
        seconds = make_class_archive(settings)
    except (LakeboundError, OSError, subprocess.TimeoutExpired) as error:
        print(
            f"class archive: not made, so applications take about ten seconds longer to start: {error}",
            file=sys.stderr,
        )
        return 0
    print(f"class archive: made in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
