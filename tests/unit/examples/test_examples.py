"""The examples: each has what its page says, its YAML passes the check, and the report of an hour is of that hour alone."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

from lakebound.cli import app

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = sorted(folder.name for folder in EXAMPLES.iterdir() if folder.is_dir())


def test_the_examples_are_found_and_listed() -> None:
    assert NAMES == ["avro_registry", "fraud_features", "hourly_report", "iot_anomalies", "order_ingestion", "sensor_windows"]
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"({name}/README.md)" in listed for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_its_yaml_passes_the_check_and_one_command_runs_it(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = EXAMPLES / name
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path))
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(folder / "pipelines"))
    monkeypatch.setenv("LAKEBOUND_APPS", str(folder))
    (file,) = (folder / "pipelines").iterdir()
    checked = CliRunner().invoke(app, ["check", "--static"])
    assert (checked.exit_code, f"{file.stem}: valid" in checked.stdout) == (0, True), checked.output
    run = folder / "run.sh"
    assert os.access(run, os.X_OK)
    subprocess.run(["bash", "-n", run], check=True)
    assert f"lakebound run {file.stem} " in run.read_text()


@pytest.fixture
def report() -> Iterator[ModuleType]:
    """The script of the example ``hourly_report``."""
    spec = importlib.util.spec_from_file_location("hourly_report", EXAMPLES / "hourly_report" / "report.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


def test_the_report_of_an_hour_has_its_orders_alone_and_replaces_its_file(report: ModuleType, tmp_path: Path) -> None:
    rows = [("13:00:00", "EUR", "paid", "1.10"), ("13:59:59", "EUR", "paid", "2.20"), ("13:30:00", "CHF", None, "5.00")]
    rows += [("12:59:59", "EUR", "paid", "100.00"), ("14:00:00", "EUR", "paid", "100.00")]
    orders = pa.table(
        {
            "placed_at": pa.array(
                [datetime.fromisoformat(f"2026-11-24T{at}").replace(tzinfo=UTC) for at, *_ in rows], pa.timestamp("us", "UTC")
            ),
            "currency": [currency for _, currency, _, _ in rows],
            "status": [status for _, _, status, _ in rows],
            "total": pa.array([Decimal(total) for *_, total in rows], pa.decimal128(18, 2)),
        }
    )
    (tmp_path / "iceberg").mkdir()
    catalog = SqlCatalog("ice", uri=f"sqlite:///{tmp_path}/iceberg/catalog.db", warehouse=f"file://{tmp_path}/iceberg")
    catalog.create_namespace("shop")
    catalog.create_table("shop.hourly_orders", orders.schema).append(orders)
    hour = report.hour_of("2026-11-24T13")
    for _ in range(2):
        file = report.write_report(report.report_of(report.read_hour(tmp_path, hour)), tmp_path / "reports", hour)
    assert file.read_text() == "currency,status,orders,total\nCHF,,1,5.00\nEUR,paid,2,3.30\n"
    assert [one.name for one in file.parent.iterdir()] == ["2026-11-24T13.csv"]
