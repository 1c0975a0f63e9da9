"""Spark reads the states in which actors end that were suspended and overtaken: the rows that their ledgers say."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.pauses.actors import FORMATS, name_of
from tests.support.pauses.form import ALL, KEPT, WorldMaker, gates, make_world_fixture, seeded  # noqa: F401
from tests.support.pauses.runs import run_cases, single_pauses

pytestmark = pytest.mark.spark
_SAMPLED = 6
_PAIRS = (("stream", "restore"), ("takeover", "compact"), ("restore", "cleaning"))


@pytest.fixture(scope="module")
def states(make_world: WorldMaker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Distinct end states: those that a run of all pauses has kept, else some that are made here."""
    if ALL and KEPT:
        yield sorted(path.parent for path in Path(KEPT).glob("*/state.json"))
        return
    folder = tmp_path_factory.mktemp("states")
    for kind in FORMATS:
        world = make_world(kind, "plain")
        passed = gates(world)
        for first, other in _PAIRS:
            names = (name_of(first, kind), name_of(other, kind))
            cases = list(single_pauses(names, passed[names[0]]))
            run_cases(world, seeded(kind, "spark", names).sample(cases, 3), keep=folder)
    yield sorted(path.parent for path in folder.glob("*/state.json"))


def _read(number: int, source: str, catalog: dict[str, str]) -> list[tuple[int, int]]:
    """Return id and offset of every row, and of those that a filter finds; a catalog is new for each state."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    for name, value in catalog.items():
        spark.conf.set(name, value)
    query = f"SELECT id, _kafka.offset FROM {source} UNION ALL SELECT -1, count(*) FROM {source} WHERE id >= 10"
    return [(row[0], row[1]) for row in spark.sql(query).collect()]


def test_spark_reads_every_distinct_end_state(states: list[Path], pool: ProcessPoolExecutor) -> None:
    assert len(states) >= (_SAMPLED if not ALL else 1)
    wrong = []
    for number, folder in enumerate(states):
        state: dict[str, Any] = json.loads((folder / "state.json").read_text())
        lake = Path(state["lake"])
        shutil.rmtree(lake, ignore_errors=True)
        shutil.copytree(folder / "lake", lake)
        if state["format"] == "delta":
            # Spark remembers a log by its folder; a Delta table may lie anywhere.
            source, catalog = f"delta.`{folder / 'lake' / 'delta' / state['name'].replace('.', '/')}`", dict[str, str]()
        else:
            source, catalog = f"state{number}.{state['name']}", _catalog(f"state{number}", lake)
        try:
            found = sorted(pool.submit(_read, number, source, catalog).result(timeout=500))
        except Exception as exc:
            found = [(-2, -2)]
            wrong.append(f"{state['case']}: {type(exc).__name__}: {str(exc)[:300]}")
        expected = sorted([(-1, sum(row >= 10 for row in state["rows"])), *((row, row) for row in state["rows"])])
        if found != expected:
            wrong.append(f"{state['case']}: Spark finds {found} instead of {expected}")
        shutil.rmtree(lake)
    print(f"\nSpark has read {len(states)} distinct end states, {len(wrong)} of them wrong")
    assert not wrong, "\n".join(wrong)


def _catalog(name: str, lake: Path) -> dict[str, str]:
    """Return the settings of a catalog of a name that Spark has no connection for yet."""
    with closing(sqlite3.connect(lake / "iceberg" / "catalog.db")) as connection, connection:
        for table in ("iceberg_tables", "iceberg_namespace_properties"):
            connection.execute(f"update {table} set catalog_name = ?", (name,))
    prefix = f"spark.sql.catalog.{name}"
    return {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{lake}/iceberg/catalog.db",
        f"{prefix}.warehouse": f"file://{lake}/iceberg",
        f"{prefix}.cache-enabled": "false",
    }
