"""What validation says beside its runs: of one that died, and when time alone ends a finding."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401

from lakebound.alerts.look import look_at
from lakebound.alerts.round import run_round
from lakebound.control.findings import Finding, Severity, read_source
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress, TableProgress, write_progress
from lakebound.inspection.validation.expectation_files import load_expectations
from lakebound.inspection.validation.findings_file import SOURCE, add_failed_run, write_open_findings
from lakebound.inspection.validation.history import append, folder, history_file, read_history
from lakebound.inspection.validation.verdict import ExpectationResult, ValidatedRange
from lakebound.inspection.validation.waiting_file import read_waiting, run_begun
from lakebound.settings import Settings
from lakebound_airflow.pipelines import spec_of

RULE = "{expect: rows_to_satisfy, name: totals, rule: total > 0}"


@pytest.fixture(autouse=True)
def expectations(settings: Settings) -> Path:
    path = settings.pipelines.parent / "expectations" / "orders.yaml"
    path.parent.mkdir()
    path.write_text(f"pipeline: orders\nresolve_after_seconds: 100\nexpectations: [{RULE}]\n")
    return path


@pytest.fixture
def control(settings: Settings) -> ControlFolder:
    found = orders(settings).control
    folder(found).mkdir(parents=True)
    return found


def validated(control: ControlFolder, at: float, *, bad: int) -> None:
    result = ExpectationResult(label="totals", severity=Severity.WARNING, passed=not bad, checked=10, unexpected=bad)
    table, position = "delta:lake.orders", int(at)
    record = ValidatedRange(
        claim=f"c{at}", run_id="r", table=table, positions=((position, position + 1),), at=at, results=(result,)
    )
    append(control, record)


def wrong(control: ControlFolder) -> list[str]:
    found = read_source(control, SOURCE)
    assert found is not None
    return [one.cause for one in found.findings]


def tell(control: ControlFolder, settings: Settings) -> None:
    spec = spec_of("orders", settings)
    file = load_expectations(spec, settings)
    assert file is not None
    write_open_findings(control, spec, file, read_history(control))


def test_a_finding_that_has_held_for_long_is_over_without_another_run(
    control: ControlFolder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    validated(control, now - 60, bad=2)
    validated(control, now - 30, bad=0)
    tell(control, settings)
    spec = spec_of("orders", settings)
    assert look_at(spec, settings) == [] and wrong(control) == ["delta:lake.orders totals"]
    monkeypatch.setattr(time, "time", lambda: now + 50)
    assert look_at(spec, settings) == [] and wrong(control) == []


def test_a_run_that_was_killed_before_it_said_what_it_found_is_made_up_for(control: ControlFolder, settings: Settings) -> None:
    tell(control, settings)
    validated(control, time.time(), bad=2)
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == ["delta:lake.orders totals"]


def test_an_unchanged_record_is_not_read_where_nothing_is_wrong(
    control: ControlFolder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated(control, time.time() - 60, bad=0)
    os.utime(history_file(control), (time.time() - 60, time.time() - 60))
    later = time.time() + 60
    monkeypatch.setattr(time, "time", lambda: later)  # the file of expectations is as old as this test
    tell(control, settings)
    monkeypatch.setattr(time, "time", lambda: later + 1)
    before = read_source(control, SOURCE)
    monkeypatch.delattr("lakebound.inspection.validation.findings_file.read_history")
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == []
    after = read_source(control, SOURCE)
    assert before is not None and after is not None and after.at > before.at


def test_a_run_that_died_is_said_beside_what_stands_until_one_reports(control: ControlFolder, settings: Settings) -> None:
    validated(control, time.time(), bad=2)
    tell(control, settings)
    add_failed_run(control, "it died")
    first = read_source(control, SOURCE)
    add_failed_run(control, "it died again")
    spec = spec_of("orders", settings)
    assert look_at(spec, settings) == [] and wrong(control) == ["delta:lake.orders totals", "run"]
    again = read_source(control, SOURCE)
    assert first is not None and again is not None
    assert again.findings[1].what == "validation did not run: it died again"
    assert again.findings[1].since == first.findings[1].since
    tell(control, settings)
    assert wrong(control) == ["delta:lake.orders totals"]


def test_with_a_wrong_file_what_was_said_stands(control: ControlFolder, settings: Settings, expectations: Path) -> None:
    validated(control, time.time(), bad=2)
    tell(control, settings)
    expectations.write_text("pipeline: orders\nexpectations: [{expect: nonsense}]\n")
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == ["delta:lake.orders totals"]


def test_without_a_file_nothing_that_validation_said_stands(
    control: ControlFolder, settings: Settings, expectations: Path
) -> None:
    validated(control, time.time(), bad=2)
    tell(control, settings)
    add_failed_run(control, "it died")
    expectations.unlink()
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == []
    before = read_source(control, SOURCE)
    assert look_at(spec_of("orders", settings), settings) == []
    after = read_source(control, SOURCE)
    assert before is not None and after is not None and after.at >= before.at, "the source still looks, so its alerts end"


def test_a_file_that_was_away_for_a_moment_brings_its_findings_back(
    control: ControlFolder, settings: Settings, expectations: Path
) -> None:
    validated(control, time.time(), bad=2)
    tell(control, settings)
    os.utime(history_file(control), (1, 1))
    aside = expectations.rename(expectations.with_suffix(".aside"))
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == []
    aside.rename(expectations)
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == ["delta:lake.orders totals"]


def test_a_machine_without_the_folder_of_expectations_takes_nothing_back(
    control: ControlFolder, settings: Settings, expectations: Path
) -> None:
    validated(control, time.time(), bad=2)
    tell(control, settings)
    expectations.parent.rename(expectations.parent.with_name("elsewhere"))
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == ["delta:lake.orders totals"]


def test_a_run_that_could_not_begin_is_over_without_a_file_and_a_record(
    control: ControlFolder, settings: Settings, expectations: Path
) -> None:
    add_failed_run(control, "it died")
    expectations.unlink()
    assert look_at(spec_of("orders", settings), settings) == [] and wrong(control) == []


def test_nothing_is_written_of_a_pipeline_of_which_nothing_was_ever_expected(
    control: ControlFolder, settings: Settings, expectations: Path
) -> None:
    expectations.unlink()
    assert look_at(spec_of("orders", settings), settings) == [] and read_source(control, SOURCE) is None


def test_the_alert_of_a_pipeline_that_lost_its_expectations_says_resolved(
    control: ControlFolder, settings: Settings, expectations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validated(control, time.time(), bad=2)
    (folder(control) / "summary.json").write_text(json.dumps({"evaluated": 10, "passed": 8, "at": time.time()}))
    tell(control, settings)
    spec = spec_of("orders", settings)
    spec = spec.model_copy(update={"objectives": spec.objectives.model_copy(update={"quality_pass_rate": 0.9})})
    now = time.time()

    def round_after(seconds: float) -> list[tuple[str, str]]:
        monkeypatch.setattr(time, "time", lambda: now + seconds)
        assert look_at(spec, settings) == []
        report = run_round(settings, lambda *_: None, clock=time.time)
        return sorted((message.kind.value, told.source) for message in report.said for told in message.alerts)

    assert round_after(0) == [("opened", "validation")]
    assert round_after(61) == [("opened", "objectives")]
    expectations.unlink()
    round_after(122)
    assert round_after(243) == [("resolved", "objectives"), ("resolved", "validation")]


def test_rows_that_nobody_validates_are_a_finding_with_its_cause_until_they_are_validated(
    control: ControlFolder, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, spec = time.time(), spec_of("orders", settings)
    landed = TableProgress(version="9", committed_at=now, commits=3, rows=30)
    body = {"started_at": now, "updated_at": now, "tables": {"delta:lake.orders": landed}}
    write_progress(control, Progress(pipeline="orders", app_id="app-1", **body))

    def found_after(seconds: float) -> list[Finding]:
        monkeypatch.setattr(time, "time", lambda: now + seconds)
        assert look_at(spec, settings) == []
        found = read_source(control, SOURCE)
        return [] if found is None else list(found.findings)

    assert found_after(0) == found_after(599) == []
    (late,) = found_after(600)
    assert (late.cause, late.severity, late.since) == ("late", Severity.WARNING, now)
    assert "no run was started" in late.what and late.evidence["run"] == ""
    process = settings.home / "airflow" / "process.json"
    process.parent.mkdir()
    process.write_text("{}")
    assert found_after(630) == [], "Airflow was stopped on purpose"
    process.unlink()
    with run_begun(control, "validate-orders-1"):
        (late,) = found_after(660)
        assert "validate-orders-1 was started at" in late.what and late.evidence["run"] == "validate-orders-1"
    add_failed_run(control, "it ended with exit code 1")
    assert [one.cause for one in found_after(720)] == ["run"]
    append(control, ValidatedRange(claim="c", run_id="r", table="delta:lake.orders", positions=((9, 10),), last="9", at=now))
    tell(control, settings)
    assert found_after(780) == []
    assert read_waiting(control) == {}
