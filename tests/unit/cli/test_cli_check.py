"""``lakebound check`` and ``lakebound schema``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings

from lakebound.cli import plan_check, small_spark
from lakebound.cli.plan_check import CheckFailedError, SparkPlan, check_plans
from lakebound.cli.small_spark import start_spark
from lakebound.inspection.validation.expectation_files import expectations_path
from lakebound.landing import topic_check
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.placed import PlacedProblem
from lakebound.spec.schema import pipeline_schema

__all__ = ["settings"]


def test_check_static_accepts_a_right_file(settings: Settings) -> None:
    assert lakebound("check", "--static").stdout == "orders: valid\n"
    assert answer("check", str(settings.pipelines / "orders.yaml"), "--static") == {
        "ok": True,
        "problems": [],
        "warnings": [],
        "tables": {},
        "changes": {},
        "schemas": {},
        "costs": {},
    }
    assert answer("check", "orders", "--static")["ok"]


def test_check_names_file_line_and_field(settings: Settings) -> None:
    (settings.pipelines / "wrong.yaml").write_text("pipeline: wrong\nfreshnes: 1s\n")
    body = answer("check", "--static", code=1)
    assert not body["ok"]
    assert f"{settings.pipelines}/wrong.yaml:2: freshnes: unknown key; did you mean 'freshness'?" in body["problems"]
    assert answer("check", "orders", "--static")["ok"], "another file's mistakes are not this one's"
    assert "wrong.yaml:1: topics: is missing" in lakebound("check", "wrong", "--static", code=1).stdout


def test_check_of_a_file_outside_of_the_folder(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "draft.yaml").write_text(yaml.safe_dump({**ORDERS, "pipeline": "draft"}))
    assert lakebound("check", str(tmp_path / "draft.yaml"), "--static").stdout == "draft: valid\n"
    assert answer("check", str(tmp_path / "none.yaml"), "--static", code=1)["problems"] == [
        f"{tmp_path}/none.yaml: this file does not exist"
    ]


def test_check_warns_of_expectations_that_shared_state_does_not_let_be_validated(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = expectations_path("orders", settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    body = {"pipeline": "orders", "expectations": [{"expect": "fresh", "max_seconds": 60}]}
    path.write_text(yaml.safe_dump(body))
    assert not any("LAKEBOUND_STATE" in line for line in answer("check", "--static")["warnings"])
    monkeypatch.setenv("LAKEBOUND_STATE", "s3://bucket/state")
    (warning,) = [line for line in answer("check", "--static")["warnings"] if "LAKEBOUND_STATE" in line]
    assert str(path) in warning and "validate__orders fails at each run" in warning
    path.unlink()
    assert not answer("check", "--static")["warnings"]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (None, "the file {apps}/transforms/orders.py does not exist"),
        ("def other(df): return df\n", "{apps}/transforms/orders.py defines no function 'clean'"),
        ("def clean(df:\n", "{apps}/transforms/orders.py:1 is not Python: '(' was never closed"),
    ],
)
def test_check_static_looks_for_the_transform(settings: Settings, source: str | None, problem: str) -> None:
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump({**ORDERS, "transform": "transforms.orders.clean"}))
    if source is not None:
        (settings.apps / "transforms" / "orders.py").write_text(source)
    line = 1 + (settings.pipelines / "orders.yaml").read_text().splitlines().index("transform: transforms.orders.clean")
    expected = f"{settings.pipelines}/orders.yaml:{line}: transform: {problem.format(apps=settings.apps)}"
    assert answer("check", "--static", code=1)["problems"] == [expected]


def test_check_runs_the_plan_phase(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = {"orders": SparkPlan("orders", tables={"delta:lake.orders": "id: BIGINT\nat: TIMESTAMP"})}
    monkeypatch.setattr(plan_check, "check_plans", lambda specs, _: (plans[spec.pipeline] for spec in specs))
    topics: dict[str, tuple[list[str], list[str]]] = {"said": ([], ["topic orders is not on the broker"])}
    monkeypatch.setattr(topic_check, "look_at_topics", lambda spec, _: topics["said"])
    warned = "  warning: topic orders is not on the broker\n"
    assert lakebound("check").stdout == f"orders: valid\n{warned}  delta:lake.orders: id: BIGINT, at: TIMESTAMP\n"
    topics["said"] = (["topic 'orders' was recreated"], [])
    file, lines = settings.pipelines / "orders.yaml", (settings.pipelines / "orders.yaml").read_text().splitlines()
    topic_line = 1 + lines.index("topics:")
    assert answer("check", code=1)["problems"] == [f"{file}:{topic_line}: topics: topic 'orders' was recreated"]
    topics["said"] = ([], [])
    plans["orders"] = SparkPlan("orders", problems=[PlacedProblem("it aggregates", file="/apps/x.py", line=3)])
    assert answer("check", code=1)["problems"] == ["/apps/x.py:3: it aggregates"]


def test_what_needs_no_spark_is_told_before_it_starts_and_such_a_pipeline_is_not_planned(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []

    def plan(specs: list[PipelineSpec], _: Settings) -> Iterator[SparkPlan]:
        for spec in specs:
            planned.append(spec.pipeline)
            yield SparkPlan(spec.pipeline)

    monkeypatch.setattr(plan_check, "check_plans", plan)
    monkeypatch.setattr(topic_check, "look_at_topics", lambda spec, _: ([], []))
    tables = [{"format": "delta", "name": "lake.second"}]
    body = {**ORDERS, "pipeline": "second", "tables": tables, "transform": "transforms.nowhere.clean"}
    (settings.pipelines / "second.yaml").write_text(yaml.safe_dump(body))
    told = lakebound("check", code=1).stdout
    assert "nowhere.py does not exist" in told and "more mistakes may follow: Spark has not planned second yet" in told
    assert planned == ["orders"] and "orders: valid" in told
    alone = lakebound("check", "second", code=1)
    assert planned == ["orders"] and "Spark plans" not in alone.output
    assert "may follow" not in lakebound("check", "second", "--static", code=1).stdout


ANSWERS = """
import json, sys
for line in sys.stdin:
    name = json.loads(line)["run_spec"]["spec"]["pipeline"]
    print("noise")
    bad = [{"what": "bad", "keys": ["tables", 0], "column": ["id"]}] * (name == "returns")
    print(json.dumps({"pipeline": name, "problems": bad, "conditions": []}), flush=True)
"""


def test_each_pipeline_is_told_before_the_next_one_is_planned(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("second", "third"):
        tables = [{"format": "delta", "name": f"lake.{name}"}]
        (settings.pipelines / f"{name}.yaml").write_text(yaml.safe_dump({**ORDERS, "pipeline": name, "tables": tables}))
    shown: list[str] = []

    def plan_one_by_one(specs: list[PipelineSpec], _: Settings) -> Iterator[SparkPlan]:
        for spec in specs:
            sys.stdout.flush()
            shown.append(sys.stdout.buffer.getvalue().decode())  # type: ignore[attr-defined]
            yield SparkPlan(spec.pipeline)

    monkeypatch.setattr(plan_check, "check_plans", plan_one_by_one)
    monkeypatch.setattr(topic_check, "LOOK_SECONDS", 0.1)
    lakebound("check")
    assert ["valid" in text for text in shown] == [False, True, True]
    assert "orders: valid" in shown[1] and "second: valid" in shown[2]


def test_each_pipeline_has_an_answer_of_its_own(settings: Settings) -> None:
    (settings.apps / "check_pipelines.py").write_text(ANSWERS)
    specs = [PipelineSpec.model_validate({**ORDERS, "pipeline": name}) for name in ("orders", "returns")]
    found = [(plan.pipeline, plan.problems) for plan in check_plans(specs, settings)]
    assert found == [("orders", []), ("returns", [PlacedProblem("bad", ("tables", 0), ("id",))])]


def test_a_password_of_reference_data_reaches_the_plan_of_its_pipeline_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEBOUND_SECRET_SHOP", "hunter2")
    answers = ANSWERS.replace("import json, sys", "import json, os, sys").replace('{"what": "bad"', '{"what": KNOWN')
    known = answers.replace("KNOWN", 'str(os.environ.get("LAKEBOUND_SECRET_SHOP"))').replace('* (name == "returns")', "")
    (settings.apps / "check_pipelines.py").write_text(known)
    login = {"host": "db", "database": "shop", "username": "u", "password": {"env": "LAKEBOUND_SECRET_SHOP"}}
    customers = {"format": "postgres", "postgres": login, "name": "customers", "key": ["id"]}
    shop = {**ORDERS, "pipeline": "returns", "transform": "transforms.a.b", "reference": {"customers": customers}}
    bodies = [{**ORDERS, "pipeline": "orders"}, shop, {**ORDERS, "pipeline": "visits"}]
    found = check_plans([PipelineSpec.model_validate(body) for body in bodies], settings)
    assert [(plan.pipeline, plan.problems[0].what) for plan in found] == [
        *(("orders", "None"), ("returns", "hunter2"), ("visits", "None"))
    ]


def test_a_plans_spark_gets_the_installations_settings_of_file_systems(settings: Settings) -> None:
    conf = {"spark.hadoop.fs.s3a.endpoint": "http://s3 with a blank", "spark.task.cpus": "1"}
    said = json.dumps({"max_cores": 4, "conf": conf})
    application = "import os, shlex\nraise SystemExit(shlex.split(os.environ['PYSPARK_SUBMIT_ARGS']))"
    (settings.apps / "check_pipelines.py").write_text(application)
    with pytest.raises(CheckFailedError) as caught:
        list(check_plans([PipelineSpec.model_validate(ORDERS)], replace(settings, spark_settings=said)))
    assert "'--master', 'local[1]'" in str(caught.value)
    assert "'spark.hadoop.fs.s3a.endpoint=http://s3 with a blank'" in str(caught.value)
    assert "spark.task.cpus" not in str(caught.value) and "cores" not in str(caught.value)


def test_the_secret_of_a_cluster_does_not_reach_a_spark_that_takes_settings_on_its_command_line(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_SPARK_AUTH_SECRET", "s3cret")
    application = "import os\nraise SystemExit(sorted(name for name in os.environ if 'SPARK' in name))"
    (settings.apps / "check_pipelines.py").write_text(application)
    with pytest.raises(CheckFailedError, match="PYSPARK_SUBMIT_ARGS") as caught:
        list(check_plans([PipelineSpec.model_validate(ORDERS)], replace(settings, spark_master="spark://m:7077")))
    assert "_SPARK_AUTH_SECRET" not in str(caught.value)


def test_a_plan_without_an_answer_says_why(settings: Settings) -> None:
    (settings.apps / "check_pipelines.py").write_text("raise SystemExit('java is missing')")
    with pytest.raises(CheckFailedError, match="exit code 1: java is missing"):
        list(check_plans([PipelineSpec.model_validate(ORDERS)], settings))


def test_a_plan_of_an_application_that_ended_before_it_was_told_says_why(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settings.apps / "check_pipelines.py").write_text("raise SystemExit('java is missing')")

    def start_and_wait(*arguments: Any) -> subprocess.Popen[str]:
        process = start_spark(*arguments)
        process.wait()
        return process

    monkeypatch.setattr(small_spark, "start_spark", start_and_wait)
    with pytest.raises(CheckFailedError, match="exit code 1: java is missing"):
        list(check_plans([PipelineSpec.model_validate(ORDERS)], settings))


def test_schema_is_printed_or_written(settings: Settings, tmp_path: Path) -> None:
    assert lakebound("schema").stdout == pipeline_schema()
    lakebound("schema", "--write", str(tmp_path / "schema.json"))
    assert (tmp_path / "schema.json").read_text() == pipeline_schema()


@pytest.mark.parametrize(
    ("delta", "iceberg", "warned"),
    [
        (["city"], ["city"], True),
        (["city"], [], True),
        (["id"], ["city"], False),
        ([], ["city"], False),
        (["city"], None, False),
    ],
)
def test_check_warns_of_a_string_that_partitions_delta_beside_iceberg(
    settings: Settings, delta: list[str], iceberg: list[str] | None, warned: bool
) -> None:
    """Delta reads an empty string back as null there."""
    tables = [{"format": "delta", "name": "shop.a", "partition_by": delta}]
    tables += [] if iceberg is None else [{"format": "iceberg", "name": "shop.a", "partition_by": iceberg}]
    value = {"format": "json", "schema": "id BIGINT, city STRING"}
    body = {**ORDERS, "value": value, "tables": tables}
    (settings.pipelines / "orders.yaml").write_text(yaml.safe_dump(body))
    warnings = answer("check", "--static")["warnings"]
    assert [line.startswith("delta:shop.a: it is partitioned by 'city': Delta reads an empty") for line in warnings] == [
        True
    ] * warned
