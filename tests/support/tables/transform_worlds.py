"""A transform at work in one lane, without a broker, and what it landed there, to compare with the other lanes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakebound.landing.rollup_recorder import Lane
from lakebound.ledger.entry import Entry
from lakebound.spec.pipeline import PipelineSpec
from lakebound_spark.batch import local_relation
from lakebound_spark.batch.kept_plan import KeptPlan
from lakebound_spark.batch.transform import Transform
from tests.support.streams.transform_functions import SCHEMA
from tests.support.tables.value_lanes import LaneWorld, Sent

LANES: tuple[Lane, ...] = ("direct", "driver", "cluster")
NOW_MS = round(time.time() * 1000)


def pipeline(**changes: Any) -> PipelineSpec:
    """Return a pipeline with one table, for a test that asks no broker."""
    body = {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "json", "schema": SCHEMA},
        "freshness": "1s",
        "tables": [{"format": "delta", "name": "shop.values"}],
        "complete_hours": {},
        **changes,
    }
    return PipelineSpec.model_validate(body)


def world(session: SparkSession, folder: Path, way: Lane, transform: Transform, **changes: str) -> LaneWorld:
    return LaneWorld(session, folder, pipeline(**changes), way, transform, has_transform=True)


def sent(first: int, values: list[bytes | None]) -> Sent:
    """Records of the last hours, two in each: an entry tells to which hours the rows belong."""
    return Sent(first, values, [NOW_MS - at * 1_900_000 for at in range(len(values))])


@dataclass(frozen=True)
class Told:
    """What is in a world: the rows of each record as text, the quarantine, and the last entry but for who wrote it."""

    rows: list[tuple[int, list[str]]]
    bad: dict[int, list[tuple[str, str, bytes | None]]]
    entry: Entry


def told(of_world: LaneWorld) -> Told:
    landed = of_world.read()
    [rows], [target] = landed.tables.values(), of_world.targets
    entry = target.table.read_ledger().entry
    assert entry is not None
    texts = [(offset, [repr(row) for row in of_record]) for offset, of_record in rows.items()]
    return Told(texts, landed.bad, entry.model_copy(update={"commit": "", "lane": None}))


def assert_alike(found: Mapping[Lane, Told]) -> None:
    """Check that every lane landed the same, in whatever order."""
    of_direct = found["direct"]
    for way in ("driver", "cluster"):
        of_other = found[way]
        assert in_order(of_direct) == in_order(of_other), way
        assert (of_direct.bad, of_direct.entry) == (of_other.bad, of_other.entry), way


def in_order(one: Told) -> list[tuple[int, list[str]]]:
    return sorted((offset, sorted(rows)) for offset, rows in one.rows)


@contextmanager
def few_rows_by_jobs() -> Iterator[None]:
    """Let the driver have Spark compute few rows as it does many: by a job of several tasks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_relation, "_SCAN_ROWS", 1)
        patch.setattr(local_relation, "_ROWS_PER_FILE_PART", 7)
        patch.setattr(KeptPlan, "compiled_once", lambda plan, session: plan)
        yield
