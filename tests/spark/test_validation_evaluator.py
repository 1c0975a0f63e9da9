"""Expectations that cannot be asked cost no other one its answer; failing rows are copied, once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.tables.bad_orders import SCHEMA, BadOrders, land, make

from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.landed_files import line_reader
from lakebound.inspection.validation.line import ValidatedSoFar, due
from lakebound.inspection.validation.run import Batch, make_batch
from lakebound.inspection.validation.submission import validation_orders
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of
from lakebound.tables.table import open_table
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.validate.application import SparkEvaluator

pytestmark = pytest.mark.spark

ROWS = 1000
NULL = "expect_column_values_to_not_be_null"
EXPECTATIONS: list[dict[str, Any]] = [
    {"name": "no_time", "expect": NULL, "kwargs": {"column": "placed_at"}},
    {"name": "sixth item", "expect": "rows_to_satisfy", "rule": "items[5].quantity > 0"},
    {"name": "raises", "expect": "rows_to_satisfy", "rule": "raise_error('as I said') is null"},
    {"name": "absent", "expect": "rows_to_satisfy", "rule": "absent > 0"},
    {"name": "absent condition", "expect": NULL, "kwargs": {"column": "total"}, "where": "absent > 0"},
    {"name": "raising condition", "expect": NULL, "kwargs": {"column": "total"}, "where": "items[5].quantity > 0"},
    {"name": "refused", "expect": "expect_column_values_to_be_between", "kwargs": {"column": "total", "mostly": 7}},
    {"name": "negative_total", "expect": "rows_to_satisfy", "rule": "total > 0"},
    {
        "name": "quantiles",
        "expect": "expect_column_quantile_values_to_be_between",
        "kwargs": {"column": "total", "quantile_ranges": {"quantiles": [0.5], "value_ranges": [[-2, -1]]}},
    },
    {"name": "bounds of text", "expect": "expect_column_values_to_be_between", "kwargs": {"column": "status", "min_value": 1}},
    {"name": "mean", "expect": "expect_column_mean_to_be_between", "kwargs": {"column": "total", "min_value": 1}},
]
PROBLEMS = {"sixth item", "raises", "absent", "absent condition", "raising condition", "refused", "bounds of text"}
SPEC = PipelineSpec.model_validate(
    {
        "pipeline": "orders",
        "topics": ["orders"],
        "connection": {"bootstrap_servers": "127.0.0.1:1"},
        "value": {"format": "bytes"},
        "freshness": "500ms",
        "tables": [{"format": "delta", "name": "shop.orders"}],
    }
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(load_settings(), home=tmp_path, warehouse=tmp_path / "lake")


@pytest.fixture
def writing(session: SparkSession) -> Iterator[SparkSession]:
    """The session with the timestamps of our tables, as our applications have it."""
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    yield session
    session.conf.unset("spark.sql.parquet.outputTimestampType")


def batch_of(settings: Settings, file: ExpectationFile) -> Batch:
    (table,), at = SPEC.tables, places_of(settings, "default")
    reader = line_reader(table, at)
    assert reader is not None
    found = due(reader.line(lambda position: False), ValidatedSoFar(), max_rows=10**9)
    assert found is not None
    return make_batch(table, found, reader, file.expectations, claim="0c9bd0b4-38f6-4c1c-a0cc-f4ff5e1ddf54")


def test_what_cannot_be_asked_is_a_problem_of_its_own(
    writing: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, orders = places_of(settings, "default"), BadOrders()
    make(SPEC.tables[0], at)
    make(SPEC.quarantine_table, at, QUARANTINE_SCHEMA)
    land(SPEC.tables[0], at, orders.rows(0, ROWS), 0)
    file = ExpectationFile.model_validate({"pipeline": "orders", "expectations": EXPECTATIONS})
    evaluator = SparkEvaluator(validation_orders(SPEC, settings, file, "run"), lambda: writing)
    batch = batch_of(settings, file)
    verdict = evaluator.evaluate(batch)
    assert [one.label for one in verdict.results] == [one.label for one in file.expectations]
    assert {one.label: one.problem for one in verdict.results if one.problem}.keys() == PROBLEMS
    found = {one.label: one for one in verdict.results}
    assert "as I said" not in found["raises"].problem, "what a condition says of records leaves by alerts"
    assert "USER_RAISED_EXCEPTION" in found["raises"].problem and "absent" in found["absent"].problem
    assert verdict.rows == ROWS and found["mean"].passed
    assert not found["quantiles"].passed and found["bounds of text"].sentence.startswith("could not be judged: ")
    for kind in ("no_time", "negative_total"):
        assert (found[kind].checked, found[kind].unexpected) == (ROWS, len(orders.bad[kind])), kind

    # The keys of one are sorted, and those of the other collected.
    monkeypatch.setattr("lakebound_spark.validate.application.MAX_COLLECTED_KEYS", len(orders.bad["no_time"]))
    found["negative_total"] = found["negative_total"].model_copy(update={"unexpected": len(orders.bad["no_time"]) + 1})
    failures = [found["no_time"], found["negative_total"]]
    copies = sum(len(orders.bad[one.label]) for one in failures)
    assert evaluator.copy_failing(batch, failures) == copies and evaluator.copy_failing(batch, failures) == 0
    quarantine = open_table(SPEC.quarantine_table, at)
    assert quarantine.scan_kafka().num_rows == copies
    assert (quarantine.layout().folder.path / f"lb-validation-{batch.claim}").is_dir()


def test_records_that_are_older_than_the_table_are_not_late(writing: SparkSession, settings: Settings) -> None:
    at, orders, old = places_of(settings, "default"), BadOrders(), 3
    make(SPEC.tables[0], at)
    rows = orders.rows(0, 10).to_pylist()
    for row in rows[:old]:
        row["_kafka"]["timestamp"] -= dt.timedelta(days=1)
    land(SPEC.tables[0], at, pa.Table.from_pylist(rows, schema=SCHEMA), 0)
    expectations = [
        {"name": "within minutes", "expect": "fresh", "max_seconds": 600, "share": 1.0},
        {"name": "at once", "expect": "fresh", "max_seconds": 1e-6, "share": 1.0},
    ]
    file = ExpectationFile.model_validate({"pipeline": "orders", "expectations": expectations})
    evaluator = SparkEvaluator(validation_orders(SPEC, settings, file, "run"), lambda: writing)
    found = {one.label: one for one in evaluator.evaluate(batch_of(settings, file)).results}
    assert found["within minutes"].passed and not found["at once"].passed
    assert found["at once"].unexpected == len(rows) - old
