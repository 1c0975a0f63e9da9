"""The command line: what it prints, its exit codes, and a sentence instead of a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.streams.command_line import ORDERS, answer, lakebound, settings
from tests.support.tables.local_tables import Lander, make_table
from tests.support.waiting import HANGS_SECONDS
from typer.testing import CliRunner

from lakebound.cli import app
from lakebound.control import status
from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, write_progress
from lakebound.errors import ServiceError
from lakebound.settings import Settings
from lakebound.spec.pipeline import PipelineSpec
from lakebound.tables.places import places_of

__all__ = ["settings"]


def tables(settings: Settings) -> list[Lander]:
    """Make the tables of ``orders``, with two batches in each."""
    landers = []
    for spec in PipelineSpec.model_validate(ORDERS).tables:
        table = make_table(spec, places_of(settings, "default"))
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
    commands += ["doctor", "recover", "rewind", "replay", "incidents", "acknowledge", "alerts", "watch", "tidy", "health"]
    commands += ["create-topic", "query", "start", "try", "new", "stop", "control"]
    commands += ["backup", "restore"]
    for command in commands:
        assert f" {command} " in shown
        assert "Usage:" in lakebound(command, "--help").stdout


def test_help_imports_nothing_heavy() -> None:
    heavy = "{'deltalake', 'pyiceberg', 'pyarrow', 'confluent_kafka', 'pydantic', 'yaml', 'psutil', 'pandas'}"
    code = f"import sys, lakebound.cli; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANGS_SECONDS)
    assert done.stdout.strip() == "[]"


def test_an_error_is_one_sentence_on_stderr(settings: Settings) -> None:
    result = lakebound("ledger", "nope", code=1)
    assert result.stdout == ""
    assert result.stderr == f"lakebound: there is no pipeline 'nope' in {settings.pipelines}; known pipelines: orders\n"


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


# --- status ------------------------------------------------------------------------------------------------------


def test_status_where_nothing_exists(settings: Settings) -> None:
    body = answer("status")
    assert [(service["name"], service["running"]) for service in body["services"]] == [("kafka", False), ("airflow", False)]
    assert [(found["pipeline"], found["app"]) for found in body["pipelines"]] == [("orders", "never started")]
    assert not settings.home.exists(), "looking makes nothing"


def test_what_nobody_has_started_is_not_called_running(settings: Settings) -> None:
    def desired() -> str:
        [line] = [line for line in lakebound("status").stdout.splitlines() if line.strip().startswith("orders ")]
        return re.split(r"\s{2,}", line.strip())[1]

    assert desired() == "not started"
    assert answer("status")["pipelines"][0]["desired"] == "running", "what a start obeys"
    change_desired(ControlFolder(settings.home, "orders"), "running", by="bob")
    assert desired() == "running"


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
    assert "as the application reports" in shown
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
    assert "has no table 'x'; its tables are: delta:lake.orders" in lakebound("ledger", "orders", "--table", "x", code=1).stderr


def test_tables_shows_what_each_holds(settings: Settings) -> None:
    tables(settings)
    rows = {row["table"]: row for row in answer("tables")["tables"]}
    for table in ("delta:lake.orders", "iceberg:lake.orders"):
        row = rows[table]
        assert (row["rows"], row["files"], row["newest_entry"]["kind"], row["newest_entry"]["epoch"]) == (12, 2, "land", 1)
        assert row["size_bytes"] > 0 and row["version"]
    assert not rows["delta:quarantine.orders"]["exists"]
    assert "lake.orders" in lakebound("tables").stdout


def test_tables_says_where_each_lies_and_what_opens_it(settings: Settings) -> None:
    tables(settings)
    rows = {row["table"]: row for row in answer("tables", "lake.orders")["tables"]}
    assert list(rows) == ["delta:lake.orders", "iceberg:lake.orders"]
    for table, row in rows.items():
        folder = Path(row["path"])
        inside = {"delta:lake.orders": "_delta_log", "iceberg:lake.orders": "metadata"}[table]
        assert (folder / inside).is_dir() and row["pipeline"] == "orders"
    assert rows["delta:lake.orders"]["catalog"] is None
    catalog = rows["iceberg:lake.orders"]["catalog"]
    assert (catalog["name"], catalog["uri"]) == ("ice", settings.iceberg_catalog_uri)
    shown = lakebound("tables", "iceberg.lake.orders").stdout
    assert "delta:lake.orders" not in shown
    for text in ("pipeline: orders", "Spark SQL:", "SELECT * FROM ice.lake.orders", 'catalog.load_table("lake.orders")'):
        assert text in shown
    unknown = lakebound("tables", "x", code=1).stderr
    assert "no pipeline has a table 'x'; the pipelines' tables are: delta:lake.orders," in unknown


def test_a_table_that_cannot_be_read_hides_no_other(settings: Settings) -> None:
    tables(settings)
    for file in (settings.warehouse / "delta" / "lake" / "orders" / "_delta_log").glob("*"):
        file.write_text("not a log")
    rows = {row["table"]: row for row in answer("tables")["tables"]}
    assert rows["delta:lake.orders"]["problem"] and rows["iceberg:lake.orders"]["rows"] == 12


# --- services and produce ----------------------------------------------------------------------------------------


def test_a_service_that_does_not_start_is_a_sentence(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakebound.local import stack

    def up(*_: object, **__: object) -> None:
        raise ServiceError("kafka", "the port is taken")

    monkeypatch.setattr(stack, "up", up)
    assert lakebound("up", code=1).stderr == "lakebound: kafka: the port is taken\n"


def test_up_says_where_things_are_and_keeps_the_password_out_of_a_pipe(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakebound.local import stack

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
    "arguments",
    [
        ("nope",),
        ("--bad-kind", "nope"),
        ("--topic", "x"),
        ("orders", "--bad-share", "2"),
        ("--seconds", "-1"),
        ("--kafka", "127.0.0.1:1", "--pipeline", "orders"),
    ],
)
def test_produce_refuses_what_it_does_not_know(settings: Settings, arguments: tuple[str, ...]) -> None:
    lakebound("produce", *arguments, code=2)


def test_demo_passes_its_exit_code_on(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakebound.local import demo

    monkeypatch.setattr(demo, "run_demo", lambda _: 3)
    assert "docs/getting-started.md" in lakebound("demo", code=3).stderr


def test_the_demo_of_running_services_starts_none(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from lakebound.local import demo

    monkeypatch.setattr(demo, "run_demo", lambda _: pytest.fail("services were started"))
    monkeypatch.setattr(demo, "run_demo_on_running", lambda _: 4)
    lakebound("demo", "--running", code=4)


def test_the_demo_of_running_services_needs_an_airflow(settings: Settings) -> None:
    from lakebound.errors import ServiceError
    from lakebound.local.airflow_view import running_airflow

    with pytest.raises(ServiceError, match="LAKEBOUND_AIRFLOW_URL"):
        running_airflow(settings)


def test_stop_says_what_is_wanted_and_by_whom(settings: Settings) -> None:
    assert "orders: the desired state is stopped" in lakebound("stop", "orders", "--reason", "a new broker").stdout
    desired = read_desired(ControlFolder(settings.home, "orders"))
    assert (desired.state, desired.reason) == ("stopped", "a new broker") and desired.by
