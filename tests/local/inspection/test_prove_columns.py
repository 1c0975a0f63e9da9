"""``prove --deep`` of tables whose offsets are all right, and whose columns readers see wrongly."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import StringType
from tests.support.tables.delta_features import SwitchedOn, switch_on
from tests.support.tables.foreign_hands import foreign_iceberg
from tests.support.tables.local_tables import TOPIC, TOPIC_ID, lander, make_table, pipeline_over, rows
from tests.support.tables.mapped_columns import ColumnMapping, Protocol, seen_rows

from lakebound.inspection.proof import collect
from lakebound.inspection.proof.collect import prove
from lakebound.inspection.proof.result import Proof
from lakebound.ledger.topics import TopicFacts
from lakebound.spec.table import TableSpec
from lakebound.tables.delta import table as delta_table
from lakebound.tables.places import Places

DELTA = TableSpec(format="delta", name="shop.orders")
ICEBERG = TableSpec(format="iceberg", name="shop.orders")


@pytest.fixture(autouse=True)
def kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka has what a proof asks for."""

    def readable(_: Any, wanted: dict[tuple[str, int], tuple[int, int]]) -> Any:
        return {place: np.arange(start, end, dtype=np.int64) for place, (start, end) in wanted.items()}

    monkeypatch.setattr(collect, "read_offsets", readable)


def deep(spec: TableSpec, at: Places) -> Proof:
    known = {TOPIC: TopicFacts(TOPIC_ID, {0: 0}, {0: 30})}
    return prove(pipeline_over(spec), at, deep=True, facts=cast(Any, SimpleNamespace(topics=lambda names: known)))


@pytest.mark.parametrize("protocol", ["features", "legacy"])
def test_cities_in_another_column_of_a_delta_table(at: Places, monkeypatch: pytest.MonkeyPatch, protocol: Protocol) -> None:
    make_table(DELTA, at)
    lander(DELTA, at).land(0, 10)
    assert deep(DELTA, at).ok
    mapping = ColumnMapping(at.delta_path(DELTA))
    mapping.switch_on(protocol)
    mapping.rename("city", "town")
    mapping.add("city")
    assert deep(DELTA, at).ok, "nothing was landed since"
    monkeypatch.setattr(delta_table, "check_may", lambda *_: None)
    monkeypatch.setattr(delta_table.DeltaLakeTable, "_check_fit", lambda *_: None)
    lander(DELTA, at).land(10, 20)
    assert [row["town"] for row in seen_rows(at.delta_path(DELTA))[10:]] == [f"city {number % 3}" for number in range(10, 20)]
    proof = deep(DELTA, at)
    assert (proof.ok, proof.missing, proof.duplicated) == (False, 0, 0)
    (misread,) = proof.tables[0].misread
    assert (misread.column, misread.belongs_to, misread.seen_in, misread.files, misread.rows) == ("city", "city", "town", 1, 10)


def test_dropped_values_that_come_back_in_an_iceberg_table(at: Places, tmp_path: Path) -> None:
    make_table(ICEBERG, at)
    lander(ICEBERG, at).land(0, 10)
    old, batch = tmp_path / "old.parquet", rows(0, 10)
    pq.write_table(batch.cast(pa.schema([field.remove_metadata() for field in batch.schema])), old)
    foreign_iceberg(ICEBERG, at).overwrite(rows(0, 0))
    foreign_iceberg(ICEBERG, at).add_files([f"file://{old}"])
    assert deep(ICEBERG, at).ok
    with foreign_iceberg(ICEBERG, at).update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("city")
    with foreign_iceberg(ICEBERG, at).update_schema() as update:
        update.add_column("city", StringType())
    assert foreign_iceberg(ICEBERG, at).scan().to_arrow()["city"].null_count == 0
    proof = deep(ICEBERG, at)
    assert not proof.ok and any("name mapping" in problem for problem in proof.tables[0].problems)
    (misread,) = proof.tables[0].misread
    assert (misread.belongs_to, misread.seen_in, misread.rows) == (None, "city", 10)


@pytest.mark.parametrize("feature", ["deletionVectors", "typeWidening", "v2Checkpoint", "columnMapping"])
def test_features_of_readers_do_not_keep_anybody_from_a_proof(at: Places, feature: str) -> None:
    make_table(DELTA, at)
    lander(DELTA, at).land(0, 10)
    switch_on(at.delta_path(DELTA), SwitchedOn(feature))
    proof = deep(DELTA, at)
    assert (proof.ok, proof.tables[0].rows, proof.tables[0].deep) == (True, 10, True)
