"""What commands print of results: no figures of what was not tried, and no \"healthy\" beside what is wrong."""

from __future__ import annotations

import pytest

from lakebound.cli.control import how_it_ends
from lakebound.cli.doctor import label_of
from lakebound.cli.quarantine import _print_result
from lakebound.cli.status import _row
from lakebound.control.progress import Progress, SearchProgress
from lakebound.control.replay_result import PieceCounts
from lakebound.control.status import PipelineStatus
from lakebound.inspection.doctor.wording import needs_person, warning
from lakebound.operations.release.orders import ReleaseResult


def test_a_release_that_was_refused_at_once_prints_no_figures(capsys: pytest.CaptureFixture[str]) -> None:
    result = ReleaseResult(app_id="release-1", state="refused", reason="restart it first")
    _print_result(result)
    assert capsys.readouterr().out.strip() == "refused: restart it first; no record was tried"
    _print_result(result.model_copy(update={"read": 7, "quarantined": 7}))
    assert "tried 7 records" in capsys.readouterr().out


def test_a_trial_that_landed_nothing_says_nothing_of_landed_batches(capsys: pytest.CaptureFixture[str]) -> None:
    result = ReleaseResult(
        app_id="r", state="completed", reason="all 1 batches landed", is_trial=True, chunks=1, read=9, quarantined=2
    )
    _print_result(result)
    assert capsys.readouterr().out.strip() == "completed: tried 9 records: nothing was landed (--plan), still open 2"


def test_a_release_says_which_schemas_the_tables_cannot_follow(capsys: pytest.CaptureFixture[str]) -> None:
    result = ReleaseResult(app_id="r", state="completed", reason="all 1 batches landed", read=9, quarantined=2)
    piece = PieceCounts(left_out={"value: schema 7": "column `at` is to be added by the next start"})
    _print_result(result.plus(piece).plus(PieceCounts()))
    first = capsys.readouterr().out.splitlines()[0]
    assert "value: schema 7" in first and "column `at` is to be added" in first


def test_a_finding_is_called_what_its_alert_is_called() -> None:
    found = [
        warning("quarantine-flood", "6.0% of the records", "quarantine-flood"),
        warning("checkpoint-grows", "2,000 MB", "application-dead"),
        warning("not-wanted", "the pipeline is stopped"),
        needs_person("crash-loop", "three starts", "crash-loop"),
    ]
    assert [label_of(one) for one in found] == ["warning", "info", "note", "needs person"]


def test_a_search_is_given_up_where_an_end_is_asked_for() -> None:
    search = SearchProgress(since=1.0, changed_at=2.0, records=4096, tried=30)
    found = Progress(pipeline="orders", app_id="orders-1", started_at=1.0, updated_at=2.0, search=search)
    assert "gives up its search" in how_it_ends(found, "orders-1")
    over = found.model_copy(update={"search": search.model_copy(update={"is_over": True})})
    for progress, app_id in ((found, "orders-2"), (over, "orders-1"), (None, "orders-1")):
        assert how_it_ends(progress, app_id) == "ends after its current batch"


def test_a_pipeline_that_rests_has_no_figures_of_its_last_application() -> None:
    found = PipelineStatus(pipeline="orders", app="stopped", lag_records=0, high_water_marks={"orders": {0: 900}})
    assert _row(found)[3:] == ("0 records", "-", "-", "orders 0:900"), "it is to run: how far behind it is matters"
    assert _row(found.model_copy(update={"desired": "stopped"}))[3:] == ("-", "-", "-", "-")
    assert _row(found.model_copy(update={"desired": "stopped", "alive": True}))[3] == "0 records"
