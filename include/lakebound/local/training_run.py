"""Makes the class archives: an application lands a few records; at their end its JVM and the broker's write what they loaded.

``python -m lakebound.local.training_run`` takes about a minute, once per environment; with the archives every
application starts some ten seconds earlier, and the broker three. The Python that Spark brings along gets its bytecode, too.
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
from lakebound.landing.class_archive import broker_archive, class_archive
from lakebound.landing.kafka_settings import client_config
from lakebound.landing.run_spec import make_run_spec
from lakebound.landing.spark_command import QUICK_START, spark_environment, spark_submit_command
from lakebound.local import stack
from lakebound.local.produce import Feed, produce
from lakebound.local.python_bytecode import add_bytecode, spark_zips
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
    """Make the archives, whatever was there before; return the seconds that it took.

    Raises:
        LakeboundError: The broker did not start, or the application did not end well.
    """
    started = time.monotonic()
    archive, of_broker = class_archive(settings.jars), broker_archive(settings.jars)
    shutil.rmtree(archive.parent, ignore_errors=True)  # those of other jars, some 200 MB each
    archive.parent.mkdir(parents=True)
    drafts = {made: made.with_suffix(f".{os.getpid()}") for made in (archive, of_broker)}
    try:
        with tempfile.TemporaryDirectory(prefix="lakebound-training-") as folder:
            home = Path(folder)
            options = f"{QUICK_START} -XX:ArchiveClassesAtExit={drafts[archive]}"
            own = replace(settings, home=home, warehouse=home / "warehouse", spark_master="local[2]", jvm_options=options)
            broker = stack.broker_of(own)
            broker.jvm_options = (f"-XX:ArchiveClassesAtExit={drafts[of_broker]}",)
            try:
                broker.start()
                _land(replace(own, kafka=broker.bootstrap_servers))
            finally:
                broker.stop()
        for made, draft in drafts.items():
            os.replace(draft, made)
    finally:
        for draft in drafts.values():
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
    """Make bytecode and archives unless they exist; a failure is only printed, because it only costs time."""
    _add_bytecode()
    settings = load_settings()
    if class_archive(settings.jars).exists() and broker_archive(settings.jars).exists():
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


def _add_bytecode() -> None:
    for file in spark_zips():
        try:
            add_bytecode(file)
        except OSError as error:
            print(f"bytecode: not added to {file}, so applications take a second longer to start: {error}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
