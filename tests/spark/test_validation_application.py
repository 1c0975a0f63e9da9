"""The validation application as it is submitted: two at once, one killed, and the verdict on orders of which 1 % are bad.

A range that a person names is validated in this process: the application does the same when it has read its orders.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.support.streams.batch_applications import DEADLINE_SECONDS, ended, last_line, started, wait_while_alive
from tests.support.streams.long_form import LONG_FORM
from tests.support.tables.bad_orders import CUSTOMERS, KINDS, STRANGE, BadOrders, land, make
from tests.support.worlds.said_findings import read_findings

from lakebound.control.folder import ControlFolder
from lakebound.inspection.validation.by_hand import ByHand
from lakebound.inspection.validation.expectations import ExpectationFile
from lakebound.inspection.validation.history import folder, open_claim, read_history
from lakebound.inspection.validation.submission import ValidationOrders, validation_command, validation_orders
from lakebound.inspection.validation.verdict import ValidationReport
from lakebound.landing.spark_command import QUICK_START
from lakebound.settings import Settings, load_settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.table import TableSpec
from lakebound.tables.places import Places, places_of
from lakebound.tables.table import KAFKA_TYPE, open_table
from lakebound_spark.batch.schema import QUARANTINE_SCHEMA
from lakebound_spark.validate.application import SparkEvaluator, Validation

pytestmark = pytest.mark.spark

COMMITS, ROWS = 20 if LONG_FORM else 10, 500
CRM = TableSpec(format="iceberg", name="crm.customers")
ONE = ["delta:shop.orders"]
EXPECTATIONS: list[dict[str, Any]] = [
    {"name": "no_time", "expect": "expect_column_values_to_not_be_null", "kwargs": {"column": "placed_at"}},
    {
        "name": "strange_status",
        "expect": "expect_column_values_to_be_in_set",
        "kwargs": {"column": "status", "value_set": ["placed", "paid", "shipped"]},
        "severity": "critical",
    },
    {
        "name": "negative_total",
        "expect": "expect_column_values_to_be_between",
        "kwargs": {"column": "total", "min_value": 0},
        "where": "status <> 'cancelled'",
    },
    {"name": "second_time", "expect": "unique_over_window", "columns": ["order_id"], "over_seconds": 3600},
    {
        "name": "lower_currency",
        "expect": "expect_column_values_to_match_regex",
        "kwargs": {"column": "currency", "regex": "^[A-Z]{3}$"},
        "severity": "info",
    },
    {"name": "has items", "expect": "rows_to_satisfy", "rule": "size(items) > 0 and _kafka.offset >= 0"},
    {"name": "tolerant", "expect": "rows_to_satisfy", "rule": "total > 0", "mostly": 0.9},
    {"name": "known customer", "expect": "values_in_table", "columns": {"customer_id": "id"}, "table": CRM.id, "tables": ONE},
    {"name": "fresh", "expect": "fresh", "max_seconds": 600},
    {"name": "usual", "expect": "usual_volume"},
    {
        "name": "window of commits",
        "expect": "unique_over_window",
        "columns": ["total", "placed_at"],
        "over_commits": 2,
        "tables": ONE,
    },
    {
        "name": "mean",
        "expect": "expect_column_mean_to_be_between",
        "kwargs": {"column": "total", "min_value": 1},
        "tables": ONE,
    },
    {"name": "columns", "expect": "expect_table_column_count_to_equal", "kwargs": {"value": 8}, "tables": ONE},
]


class Elements(HTMLParser):
    """What a browser makes of a page: elements, the names of their attributes, texts, and the page's policy."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.policy = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag] += 1
        self.attributes.update(name for name, _ in attrs)
        if dict(attrs).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attrs).get("content") or ""

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(load_settings(), home=tmp_path, warehouse=tmp_path / "lake", jvm_options=QUICK_START)


@pytest.fixture
def spec() -> PipelineSpec:
    return PipelineSpec.model_validate(
        {
            "pipeline": "orders",
            "topics": ["orders"],
            "connection": {"bootstrap_servers": "127.0.0.1:1"},
            "value": {"format": "bytes"},
            "freshness": "500ms",
            "tables": [
                {"format": "delta", "name": "shop.orders", "partition_by": ["status"]},
                {"format": "iceberg", "name": "shop.orders"},
            ],
        }
    )


def expected(on_failure: str = "quarantine") -> ExpectationFile:
    return ExpectationFile.model_validate({"pipeline": "orders", "on_failure": on_failure, "expectations": EXPECTATIONS})


def running(spec: PipelineSpec, settings: Settings, run_id: str) -> AbstractContextManager[subprocess.Popen[str]]:
    orders = validation_orders(spec, settings, expected(), run_id, is_waited_for=True)
    return started(validation_command(orders, settings), settings, settings.home / f"{run_id}.err")


def output_of(process: subprocess.Popen[str], settings: Settings, run_id: str) -> str:
    code, output = ended(process)
    assert code == 0, output + (settings.home / f"{run_id}.err").read_text()[-6000:]
    return output


def validated_here(orders: ValidationOrders, session: SparkSession) -> ValidationReport:
    """Validate in this process, with orders as the application gets them: that it starts as submitted, the other runs show.

    What a person names on the command line reaches the application's orders: tests/local/inspection/test_validate_cli.py.
    """
    received = ValidationOrders.model_validate_json(orders.model_dump_json())
    report = Validation(received)._validate(SparkEvaluator(received, lambda: session))
    assert not report.problems, report.problems
    return ValidationReport.model_validate_json(report.model_dump_json())


def make_tables(spec: PipelineSpec, at: Places) -> BadOrders:
    for table in spec.tables:
        make(table, at)
    make(spec.quarantine_table, at, QUARANTINE_SCHEMA)
    make(CRM, at, pa.schema([pa.field("id", pa.int64()), pa.field("_kafka", KAFKA_TYPE)]))
    place = {"topic": "crm", "topic_id": "t", "partition": 0, "timestamp": 1, "ordinal": 0}
    customers = [{"id": number, "_kafka": {**place, "offset": number}} for number in range(CUSTOMERS)]
    land(CRM, at, pa.Table.from_pylist(customers, schema=open_table(CRM, at).schema()), 0)
    return BadOrders()


def land_orders(spec: PipelineSpec, at: Places, orders: BadOrders, first: int, commits: int) -> None:
    for number in range(first, first + commits):
        rows = orders.rows(number * ROWS, (number + 1) * ROWS)
        for table in spec.tables:
            land(table, at, rows, number * ROWS)


def test_bad_records_are_found_counted_shown_and_copied_once(
    spec: PipelineSpec, settings: Settings, session: SparkSession
) -> None:
    at, control = places_of(settings, "default"), ControlFolder(settings.home, spec.pipeline)
    orders = make_tables(spec, at)
    land_orders(spec, at, orders, 0, COMMITS)
    _one_is_killed_beside_another(spec, settings, control)
    with running(spec, settings, "whole") as process:
        said = output_of(process, settings, "whole")
    report = ValidationReport.model_validate_json(last_line(said))
    assert not report.problems, report.problems
    for table in spec.tables:
        assert f"validate: {table.id}: reading {COMMITS * ROWS:,} rows in" in said
        assert re.search(rf"validate: {table.id}: {COMMITS * ROWS:,} rows are read, .* \(\d+\.\d s\)", said)
    assert [(one.table, one.rows) for one in report.ranges] == [(table.id, COMMITS * ROWS) for table in spec.tables]
    _assert_counts(report, orders)
    _assert_page(report)
    _assert_findings(control, orders)
    _assert_copies(spec, at, orders, before=1)
    _assert_no_values(control, said)
    summary = json.loads((folder(control) / "summary.json").read_text())
    assert (summary["evaluated"], summary["passed"]) == (report.checked_rows, report.right_rows)

    land_orders(spec, at, orders, COMMITS, 1)
    asked = ByHand(tables=("iceberg:shop.orders",), first=report.ranges[1].last)
    (by_hand,) = validated_here(validation_orders(spec, settings, expected(), "again", by_hand=asked), session).ranges
    assert by_hand.rows == 2 * ROWS and len(read_history(control)) == 2
    assert len(DeltaTable(str(at.delta_path(spec.quarantine_table))).history()) == 2


def _assert_no_values(control: ControlFolder, said: str) -> None:
    """What goes on to alerts, XComs and Airflow's log holds nothing that a record holds."""
    kept = [path for path in control.folder.rglob("*.json*") if path.name != "result.json"]
    assert {"history.jsonl", "summary.json", "report.json", "validation.json"} <= {path.name for path in kept}
    assert not [path for path in kept if "eaten" in path.read_text()] and "eaten" not in said


def _one_is_killed_beside_another(spec: PipelineSpec, settings: Settings, control: ControlFolder) -> None:
    with running(spec, settings, "killed") as victim:
        claimed = lambda: open_claim(control, "delta:shop.orders", [])  # noqa: E731
        claim = wait_while_alive(victim, claimed, "its claim", settings.home / "killed.err")
        # It holds still in the middle of its first range.
        os.killpg(victim.pid, signal.SIGSTOP)
        with running(spec, settings, "other") as other:
            output, _ = other.communicate(timeout=DEADLINE_SECONDS)
            assert other.returncode == 3, output
    assert read_history(control) == [] and open_claim(control, "delta:shop.orders", []) == claim


def _assert_counts(report: ValidationReport, orders: BadOrders) -> None:
    for one in report.ranges:
        found = {result.label: result for result in one.results}
        failed = {label for label, result in found.items() if not result.passed}
        assert failed == set(KINDS), {label: found[label].sentence for label in failed}
        for kind in KINDS:
            assert found[kind].unexpected == len(orders.bad[kind]) == COMMITS * ROWS // 500, kind
            offsets = {int(sample.rpartition(":")[2]) for sample in found[kind].samples}
            assert offsets and offsets <= set(orders.bad[kind]), f"{kind}: {found[kind].samples}"
        assert list(one.skipped) == ["usual"]
        assert found["tolerant"].unexpected == len(orders.bad["negative_total"])


def _assert_page(report: ValidationReport) -> None:
    """The page shows what records hold, and nothing in it comes from a record but text."""
    for one in report.ranges:
        path = Path(one.data_docs)
        page = Elements()
        page.feed(path.read_text())
        assert set(page.found) == {"html", "head", "meta", "title", "style", "body", "h1", "p", "table", "tr"} | {
            *("th", "td", "br", "code", "h2", "ul", "li")
        }
        assert page.policy.startswith("default-src 'none'; style-src 'sha256-")
        assert page.attributes <= {"lang", "charset", "http-equiv", "content", "class"}
        assert json.dumps(STRANGE) in page.texts, "the page shows no values"
        assert {"negative_total", f"{COMMITS * ROWS // 500}"} <= set(page.texts)
        assert json.loads((path.parent / "result.json").read_text())["rows"] == one.rows
        assert not list(path.parent.rglob("data_docs"))


def _assert_findings(control: ControlFolder, orders: BadOrders) -> None:
    (found,) = read_findings(control)
    causes = {finding.cause: finding for finding in found.findings}
    assert set(causes) == {f"{format_}:shop.orders {kind}" for format_ in ("delta", "iceberg") for kind in KINDS}
    status = causes["delta:shop.orders strange_status"]
    assert status.severity == "critical" and status.evidence["rows"] == len(orders.bad["strange_status"])


def _assert_copies(spec: PipelineSpec, at: Places, orders: BadOrders, *, before: int) -> None:
    """Those of the first table, once, though the run that was killed may have come as far; none of severity info."""
    table = DeltaTable(str(at.delta_path(spec.quarantine_table)))
    rows = table.to_pyarrow_table().to_pylist()
    wanted = Counter((kind, offset) for kind in KINDS if kind != "lower_currency" for offset in orders.bad[kind])
    assert Counter((row["reason"], row["_kafka"]["offset"]) for row in rows) == wanted
    assert {row["_kafka"]["ordinal"] for row in rows} == {-1}
    strange = next(row for row in rows if row["reason"] == "strange_status")
    landed = json.loads(strange["value"])
    assert landed["status"] == STRANGE and landed["order_id"] == f"order-{strange['_kafka']['offset']:07d}"
    assert table.version() == before
    view = open_table(spec.quarantine_table, at).read_ledger()
    assert view.entry is not None and view.entry.kind == "genesis" and view.coverage == {}
