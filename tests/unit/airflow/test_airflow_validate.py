"""The operator of validation: what it submits, and what becomes of each way in which the application may end."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowSkipException
from tests.support.streams.stand_ins import orders, settings_fixture  # noqa: F401

import lakebound.inspection.validation.planning
import lakebound_airflow.notifications.alerts
from lakebound.control.findings import Severity, read_source
from lakebound.control.folder import ControlFolder, write_json
from lakebound.errors import NotWithSharedStateError
from lakebound.inspection.validation import lateness
from lakebound.inspection.validation.expectation_files import InvalidExpectationsError
from lakebound.inspection.validation.findings_file import SOURCE
from lakebound.inspection.validation.history import folder
from lakebound.inspection.validation.planning import DueTable
from lakebound.inspection.validation.report_file import write_report
from lakebound.inspection.validation.run import result_folder
from lakebound.inspection.validation.verdict import ExpectationResult, ValidatedRange, ValidationReport
from lakebound.inspection.validation.waiting_file import read_begun
from lakebound.landing import background
from lakebound.settings import Settings
from lakebound_airflow.hooks.spark_submit import NiceSparkSubmitHook
from lakebound_airflow.operators import starvation
from lakebound_airflow.operators.validate import NotValidatedError, ValidateOperator

VALIDATED = Asset(name="validated", uri="lakebound://orders/validated")
DUE = DueTable(table="delta:lake.orders", first="3", last="9", commits=4, rows=40, expectations=1)


@pytest.fixture(autouse=True)
def expectations(settings: Settings) -> Path:
    path = settings.pipelines.parent / "expectations" / "orders.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("pipeline: orders\nexpectations: [{expect: fresh, max_seconds: 5}]\n")
    return path


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The rounds of alerts that the operator runs."""
    rounds: list[Settings] = []
    monkeypatch.setattr(lakebound_airflow.notifications.alerts, "tell", rounds.append)
    return rounds


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings) -> Callable[..., list[str]]:
    """Have applications end with an exit code, after they wrote a report; returns what was submitted."""
    submitted: list[str] = []
    resolved = NiceSparkSubmitHook._build_spark_submit_command
    monkeypatch.setattr(lakebound.inspection.validation.planning, "plan_validation", lambda spec, places, file: [DUE])

    def with_code(code: int, *problems: str, reports: bool = True) -> list[str]:
        script = tmp_path / "spark-submit"
        script.write_text(f"#!/bin/sh\nexit {code}\n")
        script.chmod(0o755)

        def build(hook: NiceSparkSubmitHook, application: str) -> list[str]:
            submitted[:] = resolved(hook, application)
            run_id = json.loads(submitted[-1])["app_id"]
            if reports:
                write_report(orders(settings).control, report(run_id, problems))
            return [str(script)]

        monkeypatch.setattr(NiceSparkSubmitHook, "_build_spark_submit_command", build)
        return submitted

    return with_code


def report(run_id: str, problems: tuple[str, ...]) -> ValidationReport:
    failed = ExpectationResult(label="totals", severity=Severity.WARNING, passed=False, checked=40, unexpected=2)
    one = ValidatedRange(
        claim="c",
        run_id=run_id,
        table="delta:lake.orders",
        positions=((3, 10),),
        first="3",
        last="9",
        rows=40,
        results=(failed,),
    )
    return ValidationReport(pipeline="orders", run_id=run_id, started_at=1, ended_at=2, ranges=(one,), problems=problems)


class Store(dict[Any, dict[str, str]]):
    """Airflow's store of assets' state, in memory."""

    def __missing__(self, asset: Any) -> Any:
        kept = self.setdefault(asset.name, {})
        return SimpleNamespace(set=lambda key, value: kept.update({key: value}))


def context(**params: str | None) -> dict[str, Any]:
    return {
        "ti": SimpleNamespace(try_number=1),
        "outlet_events": defaultdict(SimpleNamespace),
        "asset_state_store": Store(),
        "params": params,
    }


def operator() -> ValidateOperator:
    return ValidateOperator(task_id="validate", pipeline="orders", outlets=[VALIDATED])


def test_the_summary_is_its_xcom_and_its_event_and_the_asset_shows_the_version(ends: Callable[..., list[str]]) -> None:
    submitted = ends(0)
    given = context(table=None)
    summary = operator().execute(given)
    assert background.__file__ in submitted[:4] and submitted[-3].endswith("validate.py")
    assert submitted[submitted.index("--master") + 1] == "local[1]"
    assert "spark.sql.ansi.enabled=false" in submitted
    assert (summary["evaluated"], summary["passed"], summary["tables"]) == (1, 0, {"delta:lake.orders": "3..9"})
    assert summary["failed"] == ["delta:lake.orders: totals: 2 of 40 rows are not as expected"]
    assert given["outlet_events"][VALIDATED].extra == summary
    assert given["asset_state_store"]["validated"] == {"delta:lake.orders": "9"}
    orders_of_the_run = json.loads(submitted[-1])
    assert orders_of_the_run["by_hand"] is None
    assert [one["expect"] for one in orders_of_the_run["expectations"]["expectations"]] == ["fresh"]


def test_the_form_asks_for_a_range_and_needs_its_table(ends: Callable[..., list[str]]) -> None:
    submitted = ends(0)
    operator().execute(context(table="delta:lake.orders", first="3", last="5"))
    assert json.loads(submitted[-1])["by_hand"] == {
        "tables": ["delta:lake.orders"],
        "suite": None,
        "first": "3",
        "last": "5",
    }


def test_nothing_due_and_another_run_are_skipped_without_a_report_it_fails(
    ends: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends(3, reports=False)
    with pytest.raises(AirflowSkipException, match="another validation of orders"):
        operator().execute(context())
    ends(137, reports=False)
    with pytest.raises(AirflowException):
        operator().execute(context())
    monkeypatch.setattr(lakebound.inspection.validation.planning, "plan_validation", lambda spec, places, file: [])
    submitted = ends(0)
    submitted.clear()
    with pytest.raises(AirflowSkipException, match="nothing landed"):
        operator().execute(context())
    assert not submitted


def test_a_table_that_could_not_be_validated_fails_the_task_and_a_failed_expectation_does_not(
    ends: Callable[..., list[str]],
) -> None:
    ends(1, "delta:lake.orders: it cannot be read")
    with pytest.raises(NotValidatedError, match="it cannot be read"):
        operator().execute(context())


def wrong(settings: Settings) -> list[str]:
    found = read_source(orders(settings).control, SOURCE)
    return [one.what for one in found.findings] if found is not None else []


@pytest.mark.parametrize("params", [{}, {"table": "delta:lake.orders"}])
def test_with_shared_state_nothing_is_submitted(
    ends: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, expectations: Path, params: dict[str, str]
) -> None:
    submitted = ends(0)
    monkeypatch.setattr(ControlFolder, "is_shared", True)
    with pytest.raises(NotWithSharedStateError, match="lakebound validate"):
        operator().execute(context(**params))
    assert not submitted


def test_a_run_that_dies_or_cannot_be_planned_is_said_until_one_reports(
    ends: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, settings: Settings, expectations: Path
) -> None:
    ends(3, reports=False)
    with pytest.raises(AirflowSkipException):
        operator().execute(context())
    ends(137, reports=False)
    with pytest.raises(AirflowException):
        operator().execute(context(table="delta:lake.orders"))
    assert wrong(settings) == [], "another run does it, and a range by hand is nobody's"
    with pytest.raises(AirflowException):
        operator().execute(context())
    assert wrong(settings) == ["validation did not run: it ended with exit code 137 and without a report"]
    ends(0, reports=False)
    with pytest.raises(AirflowException, match="without a report"):
        operator().execute(context())
    assert wrong(settings) == ["validation did not run: it ended without a report"]

    def refuse(*_: object) -> list[DueTable]:
        raise OSError("no table\nat all")

    monkeypatch.setattr(lakebound.inspection.validation.planning, "plan_validation", refuse)
    with pytest.raises(OSError, match="no table"):
        operator().execute(context())
    assert wrong(settings) == ["validation did not run: the validation could not be planned: OSError: no table"]

    def fail(*_: object) -> list[DueTable]:
        raise KeyError("4711-1111-card")

    monkeypatch.setattr(lakebound.inspection.validation.planning, "plan_validation", fail)
    with pytest.raises(KeyError):
        operator().execute(context())
    assert wrong(settings) == [
        "validation did not run: the validation could not be planned: KeyError; "
        "the output of the command, or the log of its task, has the full message"
    ]
    monkeypatch.setattr(lakebound.inspection.validation.planning, "plan_validation", lambda spec, places, file: [])
    with pytest.raises(AirflowSkipException, match="nothing landed"):
        operator().execute(context())
    assert wrong(settings) == []
    expectations.write_text("pipeline: orders\nexpectations: []\n")
    with pytest.raises(InvalidExpectationsError):
        operator().execute(context())
    assert "could not be planned" in wrong(settings)[0]


def ordered(submitted: list[str]) -> bool:
    """Whether the run that was submitted has an ordinary share of the cores."""
    is_behind = background.__file__ in submitted
    assert json.loads(submitted[-1])["is_waited_for"] is not is_behind
    return not is_behind


def test_a_run_that_gets_too_little_of_the_cores_is_ended_and_run_again_with_an_ordinary_share(
    ends: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, settings: Settings, tmp_path: Path
) -> None:
    shares: list[bool] = []
    submitted, build = ends(0), NiceSparkSubmitHook._build_spark_submit_command

    def build_slow(hook: NiceSparkSubmitHook, application: str) -> list[str]:
        command = build(hook, application)
        shares.append(ordered(submitted))
        if len(shares) > 1:
            return command
        remove_report(submitted)
        return ["sleep", "60"]

    def remove_report(command: list[str]) -> None:
        (result_folder(orders(settings).control, json.loads(command[-1])["app_id"]) / "report.json").unlink()

    monkeypatch.setattr(NiceSparkSubmitHook, "_build_spark_submit_command", build_slow)
    monkeypatch.setattr(starvation, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(lateness, "STARVED_AFTER_SECONDS", 0.2)
    assert operator().execute(context())["rows"] == 40
    assert shares == [False, True]
    assert wrong(settings) == [] and read_begun(orders(settings).control) is None


def test_a_run_for_rows_that_have_waited_too_long_has_an_ordinary_share(
    ends: Callable[..., list[str]], settings: Settings
) -> None:
    control, submitted = orders(settings).control, ends(0)
    waiting = folder(control) / "waiting.json"
    for age, is_ordinary in ((300, False), (900, True)):
        write_json(waiting, {"delta:lake.orders": {"since": time.time() - age}})
        operator().execute(context())
        assert ordered(submitted) is is_ordinary


def test_the_result_is_told_when_the_run_ends_and_a_range_by_hand_is_not(
    ends: Callable[..., list[str]], told: list[Settings]
) -> None:
    ends(1, "delta:lake.orders: it cannot be read")
    with pytest.raises(NotValidatedError):
        operator().execute(context())
    assert len(told) == 1
    ends(0)
    operator().execute(context(table="delta:lake.orders"))
    assert len(told) == 1


def test_a_channel_that_cannot_be_reached_hides_no_result(
    ends: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(settings: Settings) -> None:
        raise OSError("no disk")

    monkeypatch.setattr(lakebound_airflow.notifications.alerts, "tell", refuse)
    ends(0)
    assert operator().execute(context())["rows"] == 40
