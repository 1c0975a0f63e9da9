"""Where real Spark streams that read our tables stand, from their checkpoints; and that they can read on after maintenance."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.support.streams.long_form import only_in_long_form
from tests.support.streams.spark_conf import source_of
from tests.support.tables.local_tables import Lander, lander, make_table

from lakebound.control.folder import ControlFolder
from lakebound.control.turns import AskForTurn
from lakebound.operations.maintenance.delta.engine import DeltaEngine
from lakebound.operations.maintenance.delta.kept_log import clean_before
from lakebound.operations.maintenance.iceberg.expiry import expire
from lakebound.operations.maintenance.iceberg.kept_snapshots import expirable
from lakebound.operations.maintenance.past_reading import read_past
from lakebound.operations.maintenance.steps import CleanLog, ExpireSnapshots
from lakebound.spec.maintenance import HistorySpec, ReaderSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places

pytestmark = pytest.mark.spark

Read = Callable[[TableSpec, ReaderSpec], int]
DEADLINE_SECONDS = 500
SHORT = HistorySpec(keep_delta_seconds=60, keep_all_seconds=60, keep_minutely_seconds=0, keep_hourly_seconds=0, undo_seconds=0)
LATER_MS = 10**13


def _read_on(source: str, kind: str, checkpoint: str, available_now: bool) -> int:
    """Read what a stream has not read yet, and return how many rows it was."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    stream = spark.readStream.format(kind).option("maxFilesPerTrigger", 5)
    if kind == "iceberg":
        stream = stream.option("streaming-max-files-per-micro-batch", 5).option("streaming-skip-overwrite-snapshots", "true")
    counted: list[int] = []

    def count(frame: Any, batch: int) -> None:
        counted.append(frame.count())

    writer = stream.load(source).writeStream.foreachBatch(count).option("checkpointLocation", checkpoint)
    try:
        if available_now:
            writer.trigger(availableNow=True).start().awaitTermination()
        else:
            query = writer.start()
            query.processAllAvailable()
            query.stop()
    except PySparkException as exc:  # it cannot be pickled
        raise RuntimeError(str(exc)) from None
    return sum(counted)


@pytest.fixture(scope="module")
def read_on(at: Places, pool: ProcessPoolExecutor) -> Read:
    def read(spec: TableSpec, reader: ReaderSpec) -> int:
        source = str(at.delta_path(spec)) if spec.format == "delta" else source_of(spec, at)
        asked = pool.submit(_read_on, source, spec.format, str(reader.checkpoint), reader.available_now)
        return asked.result(timeout=DEADLINE_SECONDS)

    return read


def remove_all_that_may_go(spec: TableSpec, at: Places, reader: ReaderSpec) -> int:
    """Do to the table's past what maintenance would do much later, and return how many versions went."""
    past = read_past(spec, at, [reader])
    assert past is not None and past.problems == ()
    if spec.format == "iceberg":
        ids = expirable(past, SHORT, {}, LATER_MS)
        if ids:
            turn = AskForTurn(ControlFolder(at.home, "shop"), spec.id)
            expire(spec, ExpireSnapshots(table=spec.id, reason="a test", snapshot_ids=ids), at, turn)
        return len(ids)
    before = clean_before(past, SHORT, {}, LATER_MS)
    if before is None:
        return 0
    DeltaEngine(at).clean_log(spec, CleanLog(table=spec.id, reason="a test", before_version=before))
    return before - past.versions[0].version


def begin_of_newest_batch(checkpoint: Path) -> int:
    """Return the Delta version at which the newest batch of a stream's checkpoint began: Spark asks for its rows once more."""
    newest = max(int(path.name) for path in (checkpoint / "offsets").iterdir() if path.name.isdecimal())
    begin = (checkpoint / "offsets" / str(newest - 1)).read_text().splitlines()[-1]
    return int(json.loads(begin)["reservoirVersion"])


def landed(spec: TableSpec, at: Places, count: int) -> Lander:
    make_table(spec, at)
    app = lander(spec, at)
    more(app, 0, count)
    return app


def more(app: Lander, start: int, end: int) -> None:
    for offset in range(start, end):
        app.land(offset, offset + 1)
        app.table.keep_cheap()


@pytest.mark.parametrize(
    ("kind", "available_now"),
    [
        # Of both kinds of table, and of both kinds of readers, the short form has one.
        pytest.param("delta", False, marks=only_in_long_form),
        ("delta", True),
        ("iceberg", False),
    ],
)
def test_a_reader_reads_on_after_all_that_it_has_read_is_gone(
    kind: str, available_now: bool, at: Places, read_on: Read
) -> None:
    properties = {"delta.checkpointInterval": "5"} if kind == "delta" else {}
    spec = TableSpec(format=kind, name=f"shop.read_{available_now}".lower(), properties=properties)
    checkpoint = at.home / f"reader-{kind}-{available_now}"
    reader = ReaderSpec(name="dashboard", table=spec.id, checkpoint=checkpoint, available_now=available_now)
    app = landed(spec, at, 20)
    unread = read_past(spec, at, [reader])
    assert unread is not None and "dashboard" in unread.problems[0], "no checkpoint yet: nothing may go"
    assert read_on(spec, reader) == 20
    stands = read_past(spec, at, [reader])
    assert stands is not None and stands.problems == () and stands.current is not None
    ids = [version.version for version in stands.versions]
    assert stands.pins["dashboard"] in (ids[-1], ids[-1] + 1)
    assert stands.restarts == ({"dashboard": begin_of_newest_batch(checkpoint)} if kind == "delta" else {})
    more(app, 20, 38)
    assert remove_all_that_may_go(spec, at, reader) >= (14 if kind == "delta" else 17)
    assert remove_all_that_may_go(spec, at, reader) == 0, "the rest is what it has still to read"
    assert read_on(spec, reader) == 18
    more(app, 38, 41)
    remove_all_that_may_go(spec, at, reader)
    assert read_on(spec, reader) == 3
    past = read_past(spec, at, [reader])
    assert past is not None and len(past.versions) <= 14


@only_in_long_form
def test_of_delta_spark_asks_for_the_newest_finished_batch_once_more(at: Places, read_on: Read) -> None:
    """Why the log stays from where that batch began; once Spark does not ask, it need not."""
    spec = TableSpec(format="delta", name="shop.asked_again", properties={"delta.checkpointInterval": "5"})
    reader = ReaderSpec(name="dashboard", table=spec.id, checkpoint=at.home / "reader-asked-again")
    app = landed(spec, at, 12)
    assert read_on(spec, reader) == 12
    more(app, 12, 17)
    assert read_on(spec, reader) == 5
    more(app, 17, 20)
    DeltaEngine(at).clean_log(spec, CleanLog(table=spec.id, reason="a test", before_version=15))
    past = read_past(spec, at, [reader])
    assert past is not None
    assert begin_of_newest_batch(at.home / "reader-asked-again") < past.versions[0].version < past.pins["dashboard"]
    with pytest.raises(RuntimeError, match="DELTA_MISSING_FILES_UNEXPECTED_VERSION"):
        read_on(spec, reader)


def test_of_iceberg_a_reader_that_comes_and_goes_needs_all_since_it_began(at: Places, read_on: Read) -> None:
    """The peer's behaviour (apache/iceberg#18000): why a reader may be registered as one with Trigger.AvailableNow."""
    spec = TableSpec(format="iceberg", name="shop.comes_and_goes")
    comes = ReaderSpec(name="nightly", table=spec.id, checkpoint=at.home / "reader-nightly", available_now=True)
    app = landed(spec, at, 6)
    assert read_on(spec, comes) == 6
    more(app, 6, 12)
    assert remove_all_that_may_go(spec, at, comes) == 0
    assert read_on(spec, comes) == 6
    stays = comes.model_copy(update={"available_now": False})
    more(app, 12, 14)
    assert remove_all_that_may_go(spec, at, stays) > 6
    with pytest.raises(RuntimeError, match="snapshot was expired or removed"):
        read_on(spec, comes)
    lost = read_past(spec, at, [comes])
    assert lost is not None and "cannot continue" in lost.problems[0]
    assert read_on(spec, stays) == 2
