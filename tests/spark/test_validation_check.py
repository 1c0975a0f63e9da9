"""``lakebound check`` asks Spark whether expectations fit the columns that the transform makes."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.cli.check import _planned_problems
from lakebound.cli.plan_check import check_plans
from lakebound.settings import load_settings
from lakebound.spec.load import load_pipeline

pytestmark = pytest.mark.spark

REPOSITORY = Path(__file__).parents[2]
EXPECTATIONS = """pipeline: orders
expectations:
  - {expect: expect_column_values_to_not_be_null, kwargs: {column: item_count}}
  - {expect: expect_column_values_to_not_be_null, kwargs: {column: item_cont}, where: item_count > 0}
  - {expect: rows_to_satisfy, rule: totl > 0}
  - {expect: rows_to_satisfy, rule: total + 1}
  - {expect: rows_to_satisfy, rule: "exists(items, i -> i.quantity > 0)"}
  - {expect: rows_to_satisfy, rule: "reflect('java.lang.System', 'getenv', 'HOME') = '/root'"}
  - {expect: rows_to_satisfy, rule: "identifier('java_' || 'method')('java.lang.System', 'getenv', 'HOME') = '/root'"}
  - {expect: rows_to_satisfy, rule: "(select count(*) from text.`/etc/hostname`) = 1"}
"""


def test_columns_and_conditions_are_those_of_the_transforms_output(tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "include" / "pipelines", tmp_path / "pipelines")
    (tmp_path / "expectations").mkdir()
    (tmp_path / "expectations" / "orders.yaml").write_text(EXPECTATIONS)
    settings = replace(
        load_settings(),
        home=tmp_path,
        warehouse=tmp_path / "lake",
        pipelines=tmp_path / "pipelines",
        apps=REPOSITORY / "spark_apps",
    )
    spec = load_pipeline("orders", settings)
    (plan,) = check_plans([spec], settings)
    assert not plan.problems and [*plan.columns["delta:sales.orders"]][-1] == "item_count"
    lines = [line.partition("orders.yaml:")[2] for line in _planned_problems(spec, plan, settings)]
    wrong = "'item_cont' is not a column of delta:sales.orders; did you mean 'item_count'?"
    assert lines[0].startswith(f"4: expectations[1].kwargs.column: {wrong}")
    assert "its columns: order_id, customer_id, status" in lines[0]
    rest = [line for line in lines if not line.startswith("4: ")]
    assert [line.partition(": is ")[0] for line in rest[:2]] == ["5: expectations[2].rule", "6: expectations[3].rule"]
    assert "`totl`" in rest[0] and "total" in rest[0]
    assert rest[1].endswith("expectations[3].rule: is double, not true or false")
    assert ["reflect" in rest[2], "java_method" in rest[3], "/etc/hostname" in rest[4]] == [True] * 3, "YAML reads the machine"
    assert len(rest) == 5
