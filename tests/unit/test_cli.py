"""The command line: what it prints, its exit codes, and a sentence instead of a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.local_tables import Lander, make_table
from typer.testing import CliRunner, Result

from lakebound import plan_check, status
from lakebound.cli import app
from lakebound.control import ControlFolder
from lakebound.errors import ServiceError
from lakebound.plan_check import CheckFailedError, Plan, check_plan
from lakebound.progress import Progress, write_progress
from lakebound.run_spec import places_of
from lakebound.settings import Settings, load_settings
from lakebound.spec import PipelineSpec
from lakebound.spec_schema import pipeline_schema

ORDERS: dict[str, Any] = {
    "pipeline": "orders",
    "topics": ["orders"],
    "connection": {"bootstrap_servers": "127.0.0.1:1"},
    "value": {"format": "bytes"},
    "freshness": "500ms",
    "tables": [{"format": "delta", "name": "lake.orders"}, {"format": "iceberg", "name": "lake.orders"}],
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEBOUND_WAREHOUSE", str(tmp_path / "lake"))
    monkeypatch.setenv("LAKEBOUND_APPS", str(tmp_path / "apps"))
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.delenv("LAKEBOUND_KAFKA", raising=False)
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "apps" / "transforms").mkdir(parents=True)
    (tmp_path / "pipelines" / "orders.yaml").write_text(yaml.safe_dump(ORDERS))
    return load_settings()


def lakebound(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


def answer(*arguments: str, code: int = 0) -> Any:
    return json.loads(lakebound(*arguments, "--json", code=code).stdout)


def tables(settings: Settings) -> list[Lander]:
    """Make the tables of ``orders``, with two batches in each."""
    landers = []
    for spec in PipelineSpec.model_validate(ORDERS).tables:
        table = make_table(spec, places_of(settings))
        lander = Lander(table, table.read_ledger())
        lander.open()
        lander.land(0, 5)
        lander.land(5, 12)
        landers.append(lander)
    return landers


# --- help and errors ---------------------------------------------------------------------------------------------


def test_every_command_has_help(settings: Settings) -> None:
    shown = lakebound("--help").stdout
    commands = ["check", "schema", "up", "down", "status", "produce", "run", "prove", "ledger", "tables", "demo"]
    for command in commands:
        assert f" {command} " in shown
        assert "Usage:" in lakebound(command, "--help").stdout


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'deltalake', 'pyiceberg', 'pyarrow', 'confluent_kafka', 'pydantic', 'yaml', 'psutil', 'pandas'}"
    code = f"import sys, lakebound.cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_an_error_is_one_sentence_on_stderr(settings: Settings) -> None:
    result = lakebound("ledger", "nope", code=1)
    assert result.stdout == ""
    assert result.stderr == f"lakebound: there is no pipeline 'nope' in {settings.pipelines}; it declares: orders\n"


def test_an_unforeseen_error_is_a_sentence_too(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of luck\nmore")

    monkeypatch.setattr(status, "pipeline_statuses", fail)
    result = lakebound("status", code=1)
    assert result.stderr == "lakebound: unexpected RuntimeError: out of luck; `lakebound --debug ...` shows where\n"


def test_debug_lets_the_error_through(settings: Settings) -> None:
    result = CliRunner().invoke(app, ["--debug", "ledger", "nope"])
    assert type(result.exception).__name__ == "UnknownPipelineError"


def test_wrong_usage_is_exit_code_2(settings: Settings) -> None:
    lakebound("no-such-command", code=2)
    lakebound("ledger", code=2)
    lakebound("ledger", "orders", "--limit", "0", code=2)


def test_version() -> None:
    assert lakebound("--version").stdout.strip()[0].isdigit()


# --- check and schema --------------------------------------------------------------------------------------------


def test_check_static_accepts_a_right_file(settings: Settings) -> None:
    assert lakebound("check", "--static").stdout == "orders: right\n"
    assert answer("check", str(settings.pipelines / "orders.yaml"), "--static") == {"ok": True, "problems": [], "tables": {}}
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
    assert lakebound("check", str(tmp_path / "draft.yaml"), "--static").stdout == "draft: right\n"
    assert answer("check", str(tmp_path / "none.yaml"), "--static", code=1)["problems"] == [
        f"{tmp_path}/none.yaml: there is no such file"
    ]


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (None, "there is no {apps}/transforms/orders.py"),
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
    plans = {"orders": Plan(tables={"delta:lake.orders": "id: int64\n  child 0: x"})}
    monkeypatch.setattr(plan_check, "check_plan", lambda spec, _: plans[spec.pipeline])
    assert lakebound("check").stdout == "orders: right\n  delta:lake.orders: id: int64\n"
    plans["orders"] = Plan(problems=["pipeline 'orders': transform: it aggregates"])
    assert answer("check", code=1)["problems"] == ["pipeline 'orders': transform: it aggregates"]


@pytest.mark.parametrize(
    ("source", "problems"),
    [
        ("import json; print('noise'); print(json.dumps({'problems': [], 'tables': {'t': 's'}}))", []),
        ("import json, sys; print(json.dumps({'problems': ['bad'], 'tables': {}})); sys.exit(1)", ["bad"]),
    ],
)
def test_the_plan_is_the_last_line(settings: Settings, source: str, problems: list[str]) -> None:
    (settings.apps / "check_pipeline.py").write_text(source)
    assert check_plan(PipelineSpec.model_validate(ORDERS), settings).problems == problems


def test_a_plan_without_an_answer_says_why(settings: Settings) -> None:
    (settings.apps / "check_pipeline.py").write_text("raise SystemExit('java is missing')")
    with pytest.raises(CheckFailedError, match="exit code 1: java is missing"):
        check_plan(PipelineSpec.model_validate(ORDERS), settings)


def test_schema_is_printed_or_written(settings: Settings, tmp_path: Path) -> None:
    assert lakebound("schema").stdout == pipeline_schema()
    lakebound("schema", "--write", str(tmp_path / "schema.json"))
    assert (tmp_path / "schema.json").read_text() == pipeline_schema()


# --- status ------------------------------------------------------------------------------------------------------


def test_status_where_nothing_exists(settings: Settings) -> None:
    body = answer("status")
    assert [(service["name"], service["running"]) for service in body["services"]] == [("kafka", False), ("airflow", False)]
    assert [(found["pipeline"], found["app"]) for found in body["pipelines"]] == [("orders", "never started")]
    assert not settings.home.exists(), "looking makes nothing"


def test_status_shows_figures_and_problems(settings: Settings) -> None:
    (settings.pipelines / "wrong.yaml").write_text("pipeline: [")
    progress = Progress(
        pipeline="orders",
        app_id="orders-1",
        started_at=1.0,
        updated_at=2.0,
        lag_records=1234,
        high_water_marks={"orders": {p: 100 + p for p in range(10)}},
        newest_record_ms=1_500,
        last_commit_at=1.75,
    )
    write_progress(ControlFolder(settings.home, "orders"), progress)
    shown = lakebound("status").stdout
    for text in (
        "1,234 records",
        "250 ms",
        "orders 0:100 1:101",
        "7:107 and 2 more (--json)",
        "wrong.yaml:1: YAML cannot be read",
    ):
        assert text in shown
    assert "the application's own figure" in shown
    assert answer("status", "orders")["pipelines"][0]["high_water_marks"]["orders"]["9"] == 109


def test_status_of_an_unknown_pipeline(settings: Settings) -> None:
    assert "there is no pipeline 'nope'" in lakebound("status", "nope", code=1).stderr


# --- ledger and tables -------------------------------------------------------------------------------------------


def test_ledger_and_tables_where_nothing_exists(settings: Settings) -> None:
    assert answer("ledger", "orders") == []
    assert "delta:lake.orders: no table yet" in lakebound("ledger", "orders").stdout
    body = answer("tables")
    assert [(row["table"], row["exists"], row["problem"]) for row in body["tables"]] == [
        ("delta:lake.orders", False, None),
        ("iceberg:lake.orders", False, None),
        ("delta:quarantine.orders", False, None),
    ]
    assert "no table yet" in lakebound("tables").stdout
    assert not settings.warehouse.exists(), "looking makes nothing"


def test_ledger_shows_entries_newest_first(settings: Settings) -> None:
    tables(settings)
    entries = answer("ledger", "orders", "--limit", "2")
    assert [(found["table"], found["entry"]["kind"], found["entry"]["rows"]) for found in entries] == [
        ("delta:lake.orders", "land", 7),
        ("delta:lake.orders", "land", 5),
        ("iceberg:lake.orders", "land", 7),
        ("iceberg:lake.orders", "land", 5),
    ]
    shown = lakebound("ledger", "orders", "--table", "iceberg:lake.orders").stdout
    assert "orders/0 [5, 12)" in shown and "genesis" in shown and "delta:lake.orders" not in shown
    by_name = lakebound("ledger", "orders", "--table", "lake.orders").stdout
    assert "delta:lake.orders" in by_name and "iceberg:lake.orders" in by_name


def test_ledger_of_an_unknown_table(settings: Settings) -> None:
    assert "has no table 'x'; it has delta:lake.orders" in lakebound("ledger", "orders", "--table", "x", code=1).stderr


def test_tables_shows_what_each_holds(settings: Settings) -> None:
    tables(settings)
    rows = {row["table"]: row for row in answer("tables")["tables"]}
    for table in ("delta:lake.orders", "iceberg:lake.orders"):
        row = rows[table]
        assert (row["rows"], row["files"], row["newest_entry"]["kind"], row["newest_entry"]["epoch"]) == (12, 2, "land", 1)
        assert row["size_bytes"] > 0 and row["version"]
    assert not rows["delta:quarantine.orders"]["exists"]
    assert "lake.orders" in lakebound("tables").stdout


def test_a_table_that_cannot_be_read_hides_no_other(settings: Settings) -> None:
    tables(settings)
    for file in (settings.warehouse / "delta" / "lake" / "orders" / "_delta_log").glob("*"):
        file.write_text("not a log")
    rows = {row["table"]: row for row in answer("tables")["tables"]}
    assert rows["delta:lake.orders"]["problem"] and rows["iceberg:lake.orders"]["rows"] == 12


# --- services and produce ----------------------------------------------------------------------------------------


def test_a_service_that_does_not_start_is_a_sentence(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakebound.embedded import stack

    def up(*_: object, **__: object) -> None:
        raise ServiceError("kafka", "the port is taken")

    monkeypatch.setattr(stack, "up", up)
    assert lakebound("up", code=1).stderr == "lakebound: kafka: the port is taken\n"


def test_up_says_where_things_are_and_keeps_the_password_out_of_a_pipe(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakebound.embedded import stack

    passwords = tmp_path / "passwords.json"
    passwords.write_text('{"admin": "s3cret"}')
    services = stack.Services("127.0.0.1:9092", "http://127.0.0.1:8080", "admin", passwords)
    monkeypatch.setattr(stack, "up", lambda *_, **__: services)
    shown = lakebound("up").stdout
    assert "http://127.0.0.1:8080" in shown and str(passwords) in shown and "s3cret" not in shown
    assert answer("up")["kafka"] == "127.0.0.1:9092"


def test_down_where_nothing_runs(settings: Settings) -> None:
    assert all(not service["running"] for service in answer("down")["services"])


@pytest.mark.parametrize(
    "arguments", [("nope",), ("--bad-kind", "nope"), ("--topic", "x"), ("orders", "--bad-share", "2"), ("--seconds", "-1")]
)
def test_produce_refuses_what_it_does_not_know(settings: Settings, arguments: tuple[str, ...]) -> None:
    lakebound("produce", *arguments, code=2)


def test_demo_passes_its_exit_code_on(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakebound import demo

    monkeypatch.setattr(demo, "run_demo", lambda _: 3)
    lakebound("demo", code=3)
