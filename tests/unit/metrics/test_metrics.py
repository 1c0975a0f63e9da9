"""The metrics: read from files of the state, in Prometheus' own format, with bounded labels, and never going back."""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from lakebound.alerts.model import Alert, Memory
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.cli import app
from lakebound.control.desired import change_desired
from lakebound.control.findings import Finding, Severity, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.histogram import histogram_of
from lakebound.control.progress import Progress, write_progress
from lakebound.control.rollup_book import RollupBook
from lakebound.control.rollups import Bucket, Figures, TableFigures
from lakebound.metrics.page import metrics_page
from lakebound.settings import Settings, load_settings

NOW = 1_700_006_400

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path))
    return load_settings()


def land(settings: Settings, pipeline: str, rows: int) -> None:
    figures = Figures(
        tables={"delta:lake.orders": TableFigures(1, rows, NOW + 5.0), "iceberg:lake.orders": TableFigures(1, rows, NOW + 6.0)},
        read=rows + 3,
        filtered=1,
        quarantined=2,
        freshness=histogram_of(0.06, rows),
        batches={"direct": histogram_of(0.02)},
        steps={"direct": {"direct_write": 0.015, "commit delta:lake.orders": 0.004}},
    )
    RollupBook(ControlFolder(settings.home, pipeline), NOW).write([Bucket(NOW, figures)], NOW + 10)


def samples(page: str) -> Samples:
    families = list(text_string_to_metric_families(page))
    assert len({family.name for family in families}) == len(families)
    found = [sample for family in families for sample in family.samples]
    result = {(one.name, frozenset(one.labels.items())): float(one.value) for one in found}
    assert len(result) == len(found), "a sample is there twice"
    return result


def labelled(**labels: str) -> frozenset[tuple[str, str]]:
    return frozenset(labels.items())


def test_what_landed_is_told_per_table_and_adds_up_over_restarts(settings: Settings) -> None:
    before: Samples = {}
    for restart in range(1, 4):
        land(settings, "orders", 100)
        found = samples(metrics_page(settings).decode())
        for table_format in ("delta", "iceberg"):
            of = labelled(pipeline="orders", table="lake.orders", format=table_format)
            assert found["lakebound_rows_landed_total", of] == 100 * restart
            assert found["lakebound_commits_total", of] == restart
        assert found["lakebound_last_commit_timestamp_seconds", of] == NOW + 6
        assert found["lakebound_records_quarantined_total", labelled(pipeline="orders")] == 2 * restart
        assert found["lakebound_freshness_seconds_count", labelled(pipeline="orders")] == 100 * restart
        assert found["lakebound_freshness_seconds_bucket", labelled(pipeline="orders", le="0.07")] == 100 * restart
        assert found["lakebound_freshness_seconds_bucket", labelled(pipeline="orders", le="0.05")] == 0
        assert found["lakebound_batch_duration_seconds_count", labelled(pipeline="orders", lane="direct")] == restart
        counters = {key: value for key, value in before.items() if key[0].endswith(("_total", "_bucket", "_count", "_sum"))}
        assert all(found[key] >= value for key, value in counters.items())
        before = found
    assert found["lakebound_up", labelled(pipeline="orders")] == 0
    assert found["lakebound_wanted", labelled(pipeline="orders")] == 1
    assert {name for _, labels in found for name, _ in labels} == {
        *("pipeline", "table", "format", "lane", "step", "severity", "le")
    }, "labels are bounded"


def test_lag_desired_state_findings_and_alerts_are_told(settings: Settings) -> None:
    control = ControlFolder(settings.home, "orders")
    ends = {"orders": {0: 10, 1: 20}}
    write_progress(
        control,
        Progress(
            pipeline="orders",
            app_id="a",
            started_at=NOW,
            updated_at=NOW + 1.5,
            high_water_marks={"orders": {0: 9, 1: 15}},
            latest_offsets=ends,
        ),
    )
    change_desired(control, "stopped", by="ada")
    finding = Finding(cause="lag", severity=Severity.WARNING, what="slow", since=NOW, runbook="lag")
    write_findings(control, "doctor", [finding, finding.model_copy(update={"cause": "other"})])
    told = {"lead": "doctor:lag", "what": "slow", "since": NOW, "first_seen": NOW}
    alerts = (
        Alert(pipeline="orders", concern="lag", severity=Severity.WARNING, opened_at=NOW, **told),
        Alert(pipeline="orders", concern="held back", severity=Severity.CRITICAL, **told),
        Alert(pipeline="*", concern="disk", severity=Severity.CRITICAL, opened_at=NOW, **told),
    )
    AlertStore(settings.home).write(AlertState(memory=Memory(alerts=alerts), round_at=NOW + 2.0))
    found = samples(metrics_page(settings).decode())
    assert found["lakebound_lag_records", labelled(pipeline="orders")] == 6
    assert found["lakebound_progress_timestamp_seconds", labelled(pipeline="orders")] == NOW + 1.5
    assert found["lakebound_wanted", labelled(pipeline="orders")] == 0
    assert found["lakebound_findings", labelled(pipeline="orders", severity="warning", runbook="lag")] == 2
    assert found["lakebound_open_alerts", labelled(pipeline="orders", severity="warning")] == 1
    assert found["lakebound_open_alerts", labelled(pipeline="orders", severity="critical")] == 0
    assert found["lakebound_open_alerts", labelled(pipeline="*", severity="critical")] == 1
    assert found["lakebound_alert_round_timestamp_seconds", frozenset()] == NOW + 2


def test_what_cannot_be_read_hides_nothing_else(settings: Settings) -> None:
    land(settings, "orders", 1)
    land(settings, "torn", 1)
    folder = ControlFolder(settings.home, "torn").folder
    for name in ("rollups/totals.json", "progress.json", "lease.json", "submission.json", "desired.json", "findings/x.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{")
    alerts = AlertStore(settings.home).file
    alerts.parent.mkdir()
    alerts.write_text("{")
    found = samples(metrics_page(settings).decode())
    assert {("lakebound_up", labelled(pipeline=name)) for name in ("orders", "torn")} <= set(found)
    assert alerts.exists(), "who only reads moves nothing"


def test_the_command_prints_or_writes_the_page_of_all_or_of_some(settings: Settings, tmp_path: Path) -> None:
    land(settings, "orders", 1)
    land(settings, "others", 1)
    runner = CliRunner()
    printed = runner.invoke(app, ["metrics"])
    assert printed.exit_code == 0 and printed.stdout == metrics_page(settings).decode()
    file = tmp_path / "lakebound.prom"
    file.write_text("old")
    assert runner.invoke(app, ["metrics", "others", "--output", str(file)]).exit_code == 0
    assert file.read_bytes() == metrics_page(settings, ["others"]) and b'"orders"' not in file.read_bytes()
    assert stat.S_IMODE(file.stat().st_mode) & 0o044 and not list(tmp_path.glob("lakebound.prom.*"))
    unknown = runner.invoke(app, ["metrics", "nobody"])
    assert unknown.exit_code == 1 and "nobody" in unknown.stderr


def test_nothing_heavy_is_imported_and_many_pipelines_are_read_fast(settings: Settings) -> None:
    heavy = {"pyspark", "deltalake", "pyiceberg", "pyarrow", "airflow", "pandas"}
    code = f"import sys, lakebound.metrics.page; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    for number in range(20):
        land(settings, f"pipeline_{number}", 1)
    began = time.process_time()
    metrics_page(settings)
    assert time.process_time() - began < 1.0
