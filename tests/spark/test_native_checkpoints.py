"""A real Spark restarts from damaged checkpoints: the truth table on which the doctor and its oracle rely.

The oracle is tests/support/worlds/spark_restart.py. Each case damages a copy of one real
checkpoint and table, asks doctor and oracle, and then starts the query.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.support.kafka.makers import topic_maker
from tests.support.streams.long_form import LONG_FORM
from tests.support.streams.spark_conf import silenced
from tests.support.worlds.native_streams import NativeSpark, NativeStream, StreamFailedError, landed, produce
from tests.support.worlds.spark_restart import NativeTable, restart

from lakebound.inspection.doctor.foreign.doctor import examine_checkpoint
from lakebound.inspection.doctor.foreign.reading import read_files
from lakebound.local.broker import Broker

pytestmark = pytest.mark.spark

FIRST, MORE = 60, 20
PARTITIONS = (0, 1, 2)
NEWEST = 2
"""The newest batch: three batches of 60 records over three partitions."""

LATEST = dict.fromkeys(PARTITIONS, FIRST + MORE)


@dataclass(frozen=True)
class Place:
    """A checkpoint and its Delta table."""

    folder: Path

    @property
    def checkpoint(self) -> Path:
        """The checkpoint."""
        return self.folder / "checkpoint"

    @property
    def table(self) -> Path:
        """The table."""
        return self.folder / "table"

    def remove(self, *paths: str) -> None:
        """Delete files of the checkpoint, and their checksum files."""
        for path in paths:
            file = self.checkpoint / path
            for found in (file, file.with_name(f".{file.name}.crc")):
                found.unlink(missing_ok=True)

    def write(self, path: str, content: bytes, *, keep_crc: bool = False) -> None:
        """Write a file of the checkpoint."""
        if not keep_crc:
            self.remove(path)
        (self.checkpoint / path).write_bytes(content)

    def go_back(self, batch: int) -> None:
        """Take batches from the table's log, as if they had not been committed."""
        for file in (self.table / "_delta_log").iterdir():
            version = file.name.lstrip(".")[:20]
            if version.isdecimal() and int(version) > batch:
                file.unlink()


def in_flight(place: Place) -> None:
    """Crash after the table's commit, before the checkpoint's."""
    place.remove(f"commits/{NEWEST}")


def planned(place: Place) -> None:
    """Crash before the table's commit."""
    in_flight(place)
    place.go_back(NEWEST - 1)


def first_batch(place: Place) -> None:
    """Crash in the first batch, after the table's commit."""
    place.remove(*(f"{log}/{batch}" for log in ("offsets", "commits") for batch in (1, 2)), "commits/0")
    place.go_back(0)


def without(*paths: str) -> Callable[[Place], None]:
    return lambda place: place.remove(*paths)


def empty(path: str) -> Callable[[Place], None]:
    return lambda place: place.write(path, b"", keep_crc=True)


def text(path: str, content: bytes) -> Callable[[Place], None]:
    return lambda place: place.write(path, content)


def flipped(place: Place) -> None:
    file = place.checkpoint / f"offsets/{NEWEST}"
    file.write_bytes(file.read_bytes().replace(b'"0":60', b'"0":61'))


def checksum_without_head(place: Place) -> None:
    (place.checkpoint / f"offsets/.{NEWEST}.crc").write_bytes(b"\x01rc\0")


def copied(source: str, target: str) -> Callable[[Place], None]:
    return lambda place: place.write(target, (place.checkpoint / source).read_bytes())


@dataclass(frozen=True)
class Case:
    """What is done, what a plain restart then does, and what the doctor says of it."""

    name: str
    steps: tuple[Callable[[Place], None], ...]
    outcome: str
    rule: str | None
    error: str = ""
    mends: bool = False


LOGS = tuple(f"{log}/{batch}" for log in ("offsets", "commits") for batch in range(NEWEST + 1))
CASES = [
    Case("finished", (), "exact", None),
    Case("in flight, in the table", (in_flight,), "exact", "batch-in-flight"),
    Case("in flight, not in the table", (planned,), "exact", "batch-in-flight"),
    Case(
        "E2 previous offsets deleted",
        (without("offsets/1"),),
        "fails",
        "previous-offsets-missing",
        "batch 1 doesn't exist",
        True,
    ),
    Case("E3 newest offsets cut", (text("offsets/2", b"v1\n"),), "fails", "newest-offsets-damaged", "STREAM_FAILED"),
    Case("E3 newest offsets deleted by hand", (in_flight, without("offsets/2")), "loses", "table-ahead"),
    Case(
        "E3 not in the table", (planned, empty("offsets/2")), "fails", "newest-offsets-damaged", "Failed to read log file", True
    ),
    Case("E3 checksum differs", (flipped,), "loses", "newest-offsets-damaged"),
    Case("E4 newest offsets deleted", (without("offsets/2"),), "fails", "offsets-missing", "CONCURRENT_STREAM_LOG_UPDATE"),
    Case("E5 newest commit empty", (empty("commits/2"),), "fails", "newest-commit-damaged", "Incomplete log file", True),
    Case("E6 metadata deleted, in flight", (in_flight, without("metadata")), "doubles", "metadata-missing", mends=True),
    Case("E6 metadata deleted", (without("metadata"),), "exact", "metadata-missing", mends=True),
    Case("E7 offsets and commits deleted", (without(*LOGS),), "loses", "reset-by-hand"),
    Case("commits deleted", (without("commits/0", "commits/1", "commits/2"),), "exact", "commits-missing"),
    Case("stray offsets", (copied("offsets/2", "offsets/999999"),), "fails", "stray-batch-file", "doesn't exist", True),
    Case(
        "initial offsets empty", (first_batch, empty("sources/0/0")), "fails", "initial-offsets-missing", "STREAM_FAILED", True
    ),
    Case("initial offsets of no use", (empty("sources/0/0"),), "exact", None),
    Case("checksum without a head", (checksum_without_head,), "exact", None),
]

SHORT = CASES[1::3]
"""Each outcome is among them, and a checkpoint that the doctor mends."""


@pytest.fixture(scope="module")
def spark(pool: ProcessPoolExecutor) -> Iterator[NativeSpark]:
    """The process with both formats: plain streams need no setting that a session cannot have for itself."""
    with silenced(pool):
        yield NativeSpark(pool)


@pytest.fixture(scope="module")
def stream(broker: Broker, spark: NativeSpark, tmp_path_factory: pytest.TempPathFactory) -> NativeStream:
    """Three batches of a real stream; afterwards more records come, which a restart reads in one batch."""
    servers, topic = broker.bootstrap_servers, topic_maker(broker.bootstrap_servers)("native", len(PARTITIONS))
    place = Place(tmp_path_factory.mktemp("native"))
    produce(servers, topic, dict.fromkeys(PARTITIONS, FIRST))
    started = NativeStream(servers, topic, "delta", str(place.table), f"file://{place.checkpoint}", batch_offsets=60)
    spark.run(started)
    produce(servers, topic, dict.fromkeys(PARTITIONS, MORE))
    return started


@pytest.fixture
def place(stream: NativeStream, tmp_path: Path) -> Place:
    """A copy of checkpoint and table."""
    copy = Place(tmp_path / "copy")
    shutil.copytree(Path(stream.table).parent, copy.folder)
    return copy


@pytest.mark.parametrize("case", CASES if LONG_FORM else SHORT, ids=lambda case: case.name)
def test_spark_restarts_as_the_oracle_and_the_doctor_say(
    case: Case, place: Place, stream: NativeStream, spark: NativeSpark
) -> None:
    truth = truth_of(place, stream)
    for step in case.steps:
        step(place)
    truth = truth_after(place, truth)
    assert restart(read_files(place.checkpoint), truth, stream.topic, LATEST) == case.outcome

    diagnosis, mending = examine_checkpoint(str(place.checkpoint), [f"delta:{place.table}"], stream.servers)
    found = {finding.rule for finding in diagnosis.findings}
    assert found == ({case.rule} if case.rule else set()) or case.rule in found
    assert diagnosis.verdict not in ("healthy", "repairable") or case.outcome == "exact"
    assert bool(mending and mending.files) == case.mends

    if mending is not None and mending.files:
        mended = Place(place.folder.with_name("mended"))
        shutil.copytree(place.table, mended.table)
        for path, content in mending.files.items():
            (mended.checkpoint / path).parent.mkdir(parents=True, exist_ok=True)
            (mended.checkpoint / path).write_bytes(content)
        assert run(spark, stream, mended) == ("exact", "")

    outcome, error = run(spark, stream, place)
    assert (outcome, case.error in error) == (case.outcome, True), error


def run(spark: NativeSpark, stream: NativeStream, place: Place) -> tuple[str, str]:
    """Start the query, and return what became of the records, or Spark's error."""
    again = replace(stream, table=str(place.table), checkpoint=f"file://{place.checkpoint}", batch_offsets=10_000)
    try:
        spark.run(again)
    except StreamFailedError as exc:
        return "fails", str(exc)
    rows = landed(place.table)
    if any(count > 1 for count in rows.values()):
        return "doubles", ""
    return ("exact" if len(rows) == sum(LATEST.values()) else "loses"), ""


def truth_of(place: Place, stream: NativeStream) -> NativeTable:
    """Return what the undamaged table holds, batch by batch."""
    query = json.loads((place.checkpoint / "metadata").read_text())["id"]
    ends = [dict.fromkeys(PARTITIONS, 0)]
    for batch in range(NEWEST + 1):
        line = (place.checkpoint / f"offsets/{batch}").read_text().splitlines()[2]
        ends.append({int(partition): end for partition, end in json.loads(line)[stream.topic].items()})
    truth = NativeTable()
    for batch in range(NEWEST + 1):
        truth.commit(query, batch, ends[batch], ends[batch + 1])
    return truth


def truth_after(place: Place, truth: NativeTable) -> NativeTable:
    """Return what is left of it when the newest commits were taken from the log."""
    kept = max(int(file.stem) for file in (place.table / "_delta_log").glob("*.json"))
    rows = truth.rows[: (kept + 1) * len(PARTITIONS)]
    return NativeTable(dict.fromkeys(truth.epochs, kept), rows)
