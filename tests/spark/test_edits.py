"""Any edit of a pipeline is safe: it is applied, or check and start refuse it alike before anything is created or changed."""

from __future__ import annotations

import datetime
import json
import os
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession
from tests.oracle import read_delta, read_iceberg
from tests.support.streams.long_form import LONG_FORM, short_form
from tests.support.tables.edits import PARTITIONS, Body, Edit, body, edits
from tests.support.waiting import HANGS_SECONDS

from lakebound.control.lease import release
from lakebound.errors import LakeboundError
from lakebound.landing.run_spec import RunSpec
from lakebound.ledger.entry import Offsets, TopicOffsets
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places
from lakebound_spark.batch.records import Records
from lakebound_spark.batch.transform import KAFKA_SCHEMA
from lakebound_spark.check.plan import check
from lakebound_spark.stream.application import Application
from lakebound_spark.stream.opening import take_lease
from lakebound_spark.stream.stop_signal import StopSignal

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("LAKEBOUND_SEED") or 1)
"""Chooses the cases of the short form, which have each kind of table and each fate; ``make test-edits`` tries all."""

READERS = ("library", "polars", "spark")
FIRST_DAY = datetime.datetime(2023, 11, 15, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Case:
    """An edit of a pipeline with one table."""

    number: int
    format: str
    partitioned: bool
    edit: Edit

    @property
    def id(self) -> str:
        """For the report."""
        return f"{self.format}{'-partitioned' if self.partitioned else ''}-{self.edit.name.replace(' ', '_')}"

    def own(self, found: Body) -> Body:
        """Return the YAML's body with names of this case alone: all cases share one warehouse."""
        text = json.dumps(found).replace('"shop.', f'"case{self.number}.')
        for name in ("orders", "returns"):
            text = text.replace(f'"pipeline": "{name}"', f'"pipeline": "{name}{self.number}"')
        mine: Body = json.loads(text)
        return mine


def cases() -> list[Case]:
    found = [
        (format_name, partitioned, edit) for format_name, partitioned in PARTITIONS for edit in edits(partitioned=partitioned)
    ]
    every = [Case(number, *one) for number, one in enumerate(found)]
    if not LONG_FORM:
        random.Random(SEED).shuffle(every)
    return short_form(every, lambda case: [case.format, case.partitioned, case.edit.fates[case.format]])


@pytest.fixture(params=cases(), ids=lambda case: case.id)
def case(request: pytest.FixtureRequest) -> Case:
    found: Case = request.param
    return found


@pytest.fixture(autouse=True, scope="module")
def timestamps(session: SparkSession) -> None:
    """As every application has it (``lakebound.landing.spark_command``)."""
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")


def run_of(spec: PipelineSpec, at: Places, app: str) -> RunSpec:
    return RunSpec(spec=spec, places=at, app_id=app, freshness=spec.freshness)


def start(session: SparkSession, spec: PipelineSpec, at: Places, app: str, offsets: range) -> None:
    """Start as an application does, land one batch as it does, and end."""
    run = run_of(spec, at, app)
    topic = spec.topics[0]
    facts = {name: TopicFacts(f"id-of-{name}", {0: 0}, {0: 1000}) for name in spec.topics}
    lease = take_lease(run)
    try:
        parts = Application(run, None, StopSignal()).prepare(session, lease, facts)  # type: ignore[arg-type]
        try:
            wanted: Offsets = {topic: TopicOffsets(topic_id=f"id-of-{topic}", partitions={0: ((offsets.start, offsets.stop),)})}
            records = session.createDataFrame([record(topic, offset) for offset in offsets], KAFKA_SCHEMA)
            parts.batches.lander.land(Records(session, wanted, lambda: records), 0, wanted, lambda: None)
            parts.batches.lander.flush()
        finally:
            parts.batches.lander.close()
    finally:
        release(run.control, lease)


def record(topic: str, offset: int) -> tuple[Any, ...]:
    """Return a record that fits the columns before each edit and after it, as far as these are what a producer sends."""
    at = FIRST_DAY + datetime.timedelta(hours=offset)
    value = {
        "id": offset,
        "city": f"city {offset % 3}",
        "amount": offset,
        "price": 1.5,
        "at": at.isoformat().replace("+00:00", "Z"),
        "day": at.date().isoformat(),
        "merchant": {"name": "m", "code": offset},
    }
    return (None, json.dumps(value).encode(), topic, 0, offset, at, 0, None)


def said_by_check(session: SparkSession, spec: PipelineSpec, at: Places) -> list[str]:
    """Return the problems that check sees."""
    return [problem.what for problem in check(session, run_of(spec, at.read_only(), "check"), []).problems]


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Return what stands in a folder: size and time of each file."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-journal", "-wal", "-shm"))
    }


def seen(one: TableSpec, at: Places, pool: ProcessPoolExecutor) -> dict[str, list[int]]:
    """Return the offsets of all rows by reader."""
    namespace, name = one.name.split(".")
    if one.format == "delta":
        folder = at.root.path / "delta" / namespace / name
        rows, polars = read_delta(folder), pl.read_delta(str(folder))
    else:
        rows = read_iceberg(at.root.path / "iceberg" / "catalog.db", namespace, name)
        polars = pl.from_arrow(rows)  # type: ignore[assignment]
    return {
        "library": sorted(place["offset"] for place in rows["_kafka"].to_pylist()),
        "polars": sorted(place["offset"] for place in polars["_kafka"].to_list()),
        "spark": pool.submit(spark_offsets, one.format, namespace, name, str(at.home)).result(timeout=HANGS_SECONDS),
    }


def spark_offsets(format_name: str, namespace: str, name: str, home: str) -> list[int]:
    """Read in a process whose Spark knows both formats."""
    session = SparkSession.getActiveSession()
    assert session is not None
    table = f"ice.{namespace}.{name}" if format_name == "iceberg" else f"delta.`{home}/lake/delta/{namespace}/{name}`"
    return sorted(row[0] for row in session.sql(f"select _kafka.offset from {table}").collect())


def test_an_edit_is_applied_or_refused_before_anything_is_touched(
    case: Case, session: SparkSession, at: Places, pool: ProcessPoolExecutor
) -> None:
    before = body(case.format, partitioned=case.partitioned)
    old = PipelineSpec.model_validate(case.own(before))
    start(session, old, at, f"before-{case.number}", range(10))
    case.edit.change(before)
    fate = case.edit.fates[case.format]
    try:
        new = PipelineSpec.model_validate(case.own(before))
    except ValidationError as exc:
        assert fate == "wrong", exc
        return
    stood = tree(at.root.path)
    problems = said_by_check(session, new, at)
    assert tree(at.root.path) == stood, "check has written something"
    assert bool(problems) is (fate != "applied"), problems

    if problems:
        with pytest.raises(LakeboundError) as refused:
            start(session, new, at, f"after-{case.number}", range(10, 15))
        unsaid = [line for line in problems if line.partition(": ")[2] not in str(refused.value)]
        assert not unsaid, f"check says {unsaid}, the start says {refused.value}"
        assert tree(at.root.path) == stood, "a start that was refused has written something"
        start(session, old, at, f"again-{case.number}", range(10, 15))
        rows = [(one, range(15)) for one in old.tables]
    else:
        start(session, new, at, f"after-{case.number}", range(10, 15))
        kept = {one.id for one in old.tables} & {one.id for one in new.tables}
        rows = [(one, range(0 if one.id in kept else 10, 15)) for one in new.tables]
        rows += [(one, range(10)) for one in old.tables if one.id not in kept]
    for one, offsets in rows:
        assert seen(one, at, pool) == {reader: list(offsets) for reader in READERS}, one.id


def test_two_pipelines_cannot_swap_their_tables(session: SparkSession, at: Places, pool: ProcessPoolExecutor) -> None:
    specs = [PipelineSpec.model_validate(swapped(name, table)) for name, table in (("left", "left"), ("right", "right"))]
    for spec in specs:
        start(session, spec, at, f"{spec.pipeline}-1", range(5))
    stood = tree(at.root.path)
    for name, table in (("left", "right"), ("right", "left")):
        spec = PipelineSpec.model_validate(swapped(name, table))
        (problem,) = said_by_check(session, spec, at)
        assert f"is written by pipeline '{table}'" in problem
        with pytest.raises(LakeboundError, match=f"is written by pipeline '{table}'"):
            start(session, spec, at, f"{name}-2", range(5, 9))
    assert tree(at.root.path) == stood
    for spec in specs:
        assert set(map(tuple, seen(spec.tables[0], at, pool).values())) == {tuple(range(5))}


def swapped(pipeline: str, table: str) -> Body:
    return body("delta", partitioned=False, name=f"swap.{table}") | {"pipeline": pipeline}


def test_a_topic_that_was_recreated_is_refused_before_a_new_table_is_created(session: SparkSession, at: Places) -> None:
    before = body("delta", partitioned=False, name="recreated.orders") | {"pipeline": "recreated"}
    spec = PipelineSpec.model_validate(before)
    start(session, spec, at, "recreated-1", range(5))
    stood = tree(at.root.path)
    before["tables"].append({"format": "iceberg", "name": "recreated.second"})
    run = run_of(PipelineSpec.model_validate(before), at, "recreated-2")
    lease = take_lease(run)
    try:
        with pytest.raises(LakeboundError, match="was deleted and created again"):
            Application(run, None, StopSignal()).prepare(  # type: ignore[arg-type]
                session, lease, {"orders": TopicFacts("another-id", {0: 0}, {0: 3})}
            )
    finally:
        release(run.control, lease)
    assert tree(at.root.path) == stood
