"""What Spark finds wrong with a pipeline is told with the file and line where it is mended, and with what to do."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.support.tables.local_tables import make_table, places

from lakebound.landing.run_spec import RunSpec
from lakebound.settings import load_settings
from lakebound.spec.load import load_file
from lakebound.spec.placed import told
from lakebound.spec.table import TableSpec
from lakebound_spark.check.plan import check
from lakebound_spark.session import hadoop_settings

pytestmark = pytest.mark.spark

YAML = """\
pipeline: orders
topics: [orders]
connection: {bootstrap_servers: "nowhere:9092"}
value:
  format: json
  schema: |
    id BIGINT,
    city STRING,
    at TIMESTAMP,
    items ARRAY<STRUCT<sku: STRING, quantity: INT>>
freshness: 1s
transform: transforms.orders.clean
tables:
  - format: delta
    name: shop.orders
"""
TRANSFORM = """\
from pyspark.sql import functions as F


def clean(records):
    records = records.where("id is not null")
    return records
"""


@pytest.fixture
def problems(session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """Return a function that checks the pipeline after a change of its YAML and one of its transform."""
    at = places(tmp_path)
    for name in imported_transforms():
        monkeypatch.delitem(sys.modules, name)
    make_table(TableSpec(format="delta", name="shop.orders"), at)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def checked(yaml: tuple[str, str] = ("", ""), transform: tuple[str, str] = ("", "")) -> list[str]:
        (tmp_path / "transforms").mkdir()
        (tmp_path / "transforms" / "__init__.py").touch()  # else the package of spark_apps comes before it
        (tmp_path / "transforms" / "orders.py").write_text(TRANSFORM.replace(*transform))
        importlib.invalidate_caches()
        path = tmp_path / "orders.yaml"
        path.write_text(YAML.replace(*yaml))
        spec = load_file(path, load_settings({}))
        run = RunSpec(spec=spec, places=at.read_only(), app_id="check", freshness=spec.freshness)
        return [told(problem, spec, path, tmp_path) for problem in check(session, run, ()).problems]

    yield checked
    for name in imported_transforms():
        del sys.modules[name]


def imported_transforms() -> list[str]:
    return [name for name in sys.modules if name.split(".")[0] == "transforms"]


@pytest.mark.parametrize(
    ("yaml", "transform", "begins", "way_out"),
    [
        (
            ("city STRING", "town STRING"),
            ("", ""),
            "orders.yaml:8: value.schema: delta:shop.orders: column town",
            "renamed to town?",
        ),
        (
            ("sku: STRING", "sku: INT"),
            ("", ""),
            "orders.yaml:10: value.schema: delta:shop.orders: column items.",
            "another name",
        ),
        (("at TIMESTAMP", "at DECIMAL(50,2)"), ("", ""), "orders.yaml:6: value.schema: is not a schema: ", "write NAME TYPE"),
        (
            ("at TIMESTAMP", "at TIMESTAMP NOT NULL NULL"),
            ("", ""),
            "orders.yaml:9: value.schema: is not a schema: ",
            "write NAME TYPE",
        ),
        (
            ("    name: shop.orders", "    name: shop.orders\n    partition_by: [nowhere]"),
            ("", ""),
            "orders.yaml:16: tables[0].partition_by: delta:shop.orders: it is partitioned by 'nowhere'",
            "not one of the columns id, city, at, items, _kafka",
        ),
        (
            ("    name: shop.orders", "    name: shop.orders\n    partition_by: [city]"),
            ("", ""),
            "orders.yaml:16: tables[0].partition_by: delta:shop.orders: it is partitioned by nothing",
            "remove partition_by",
        ),
        (
            ("tables:", "to_topics:\n  - topic: shop.clean\n    key: nowhere\ntables:"),
            ("", ""),
            "orders.yaml:15: to_topics[0].key: topic:shop.clean: its key 'nowhere' is not a column of the rows",
            "which have id, city, at, items",
        ),
        (
            ("tables:", "to_topics:\n  - topic: shop.clean\n    key: at\ntables:"),
            ("", ""),
            "orders.yaml:15: to_topics[0].key: topic:shop.clean: its key 'at' is of type TIMESTAMP",
            "cast it in the transform",
        ),
        (
            ("", ""),
            ("id is not null", "nowhere > 1"),
            "transforms/orders.py:5: transform transforms.orders.clean: fails on the schema of its input: ",
            "its input has the columns id, city, at, items, _kafka",
        ),
        (
            ("", ""),
            ("return records", "return records.withColumn('city', F.length('city'))"),
            "transforms/orders.py:6: delta:shop.orders: column city is STRING in the table, INT in the pipeline",
            "give the new one another name",
        ),
        (
            ("", ""),
            ("return records", "return records.groupBy('_kafka').count()"),
            "transforms/orders.py:4: transform transforms.orders.clean: uses Aggregate",
            "project, filter, explode and static joins only",
        ),
        (
            ("", ""),
            ("def clean", "import nothing_of_this_name\ndef clean"),
            "transforms/orders.py:4: transform",
            "cannot be imported",
        ),
        (
            ("", ""),
            ("def clean", "RATES = 1 / 0\ndef clean"),
            "transforms/orders.py:4: ZeroDivisionError: ",
            "division by zero",
        ),
    ],
)
def test_a_problem_has_its_file_its_line_and_a_way_out(problems, yaml, transform, begins, way_out) -> None:  # type: ignore[no-untyped-def]
    (line,) = problems(yaml, transform)
    assert line.startswith(begins) and way_out in line, line


def test_a_pipelines_settings_of_file_systems_count_while_it_is_planned_and_no_longer(session: SparkSession) -> None:
    def endpoint() -> str | None:
        return session._jsparkSession.sessionState().newHadoopConf().get("fs.s3a.endpoint")

    before = endpoint()
    with hadoop_settings(session, {"spark.hadoop.fs.s3a.endpoint": "http://s3.example.com", "spark.task.cpus": "1"}):
        assert endpoint() == "http://s3.example.com" != before
    assert endpoint() == before
