"""What charts say: values of the rollups, gaps where nothing is known, round axes, and markup that stays text."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.control.histogram import histogram_of
from lakebound.control.incidents import record_incident
from lakebound.control.rollup_files import append_buckets
from lakebound.control.rollups import MINUTE, Bucket, Figures, TableFigures
from lakebound_airflow.page.charts.axes import time_ticks, value_text, value_ticks
from lakebound_airflow.page.charts.fragment import charts_fragment
from lakebound_airflow.page.charts.model import Chart, Mark, gathered
from lakebound_airflow.page.charts.periods import PERIODS, Period, period_named
from lakebound_airflow.page.charts.reading import History, read_history
from lakebound_airflow.page.charts.sparklines import Sparklines, sparkline
from lakebound_airflow.page.charts.svg import path_of
from lakebound_airflow.page.charts.values import charts_of

NOW = 1_800_000_005.0
MARKUP = '"><script>alert(1)</script>'
FIGURES = Figures(
    tables={f"delta:{MARKUP}": TableFigures(2, 300)},
    read=200,
    quarantined=50,
    lag_records=7,
    freshness=histogram_of(0.5, 200),
    batches={"direct": histogram_of(0.2, 4)},
    steps={"direct": {"commit": 0.8}},
    cpu_seconds=5.0,
)


def charts() -> dict[str, Chart]:
    """Charts of two points with a gap between them."""
    found = charts_of([Bucket(100, FIGURES), Bucket(120, FIGURES)], [], [100, 110, 120], 200.0)
    return {chart.id: chart for chart in found}


def test_lines_have_the_values_of_the_rollups_and_gaps() -> None:
    found = charts()
    assert found["lag"].lines[0].values == (7, None, 7)
    assert found["bad"].lines[0].values == (0.25, None, 0.25)
    assert [line.values[0] for line in found["rows"].lines] == [20.0, 30.0]
    assert found["freshness"].lines[2].values == (FIGURES.freshness.quantile(0.99), None, FIGURES.freshness.quantile(0.99))
    assert found["steps"].lines[0].values[0] == pytest.approx(0.2)
    assert found["cpu"].lines[0].values == (0.5, None, 0.5) and found["cost"].lines[0].values == (25_000, None, 25_000)
    assert "files" not in found


def test_the_present_bucket_counts_by_the_time_that_has_passed() -> None:
    found = charts_of([Bucket(7200, FIGURES)], [], [3600, 7200], 7300.0)
    assert next(chart for chart in found if chart.id == "rows").lines[0].values == (None, 2.0)


@pytest.mark.parametrize("period", PERIODS, ids=lambda period: period.name)
def test_no_period_has_more_than_400_points_and_each_is_made_of_whole_buckets(period: Period) -> None:
    times = period.times(NOW)
    assert 50 < len(times) <= 400 and times[0] <= NOW - period.seconds and times[-1] <= NOW < times[-1] + period.step_seconds
    assert period.step_seconds % period.source.seconds == 0 and period.source.kept_seconds >= period.seconds - 600


def test_axes_are_round() -> None:
    assert value_ticks(17.2, "seconds") == [0, 5, 10, 15, 20]
    assert value_ticks(0.31, "share") == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert value_ticks(0, "count") == [0, 1]
    assert value_text(1536, "bytes") == "1.5 KiB" and value_text(300, "seconds") == "5 min"
    assert time_ticks(1000, 4600) == [1200, 1800, 2400, 3000, 3600, 4200]


def test_a_line_breaks_where_nothing_is_known() -> None:
    assert path_of([(0, 1), (2, 3), None, (4, 5)]) == "M0,1h0L2,3M4,5h0"


def test_marks_of_one_kind_in_one_slot_become_one() -> None:
    marks = [Mark("incident", at, f"number {at}") for at in (0, 1, 2, 70)]
    assert [(mark.at, mark.what) for mark in gathered(marks, 60)] == [
        (0, "3 × incident; the last one: number 2"),
        (70, "number 70"),
    ]


def test_markup_stays_text_and_the_values_are_whole(tmp_path: Path) -> None:
    period = period_named("15m")
    assert period is not None
    at = period.times(NOW)[-3]
    history = History([Bucket(at, FIGURES)], [], [Mark("start", at, MARKUP)], (MARKUP,))
    text = charts_fragment(history, period, NOW)
    assert "<script" not in text and text.count("&lt;script&gt;") >= 3
    series = [json.loads(unescape(found)) for found in re.findall(r'data-series="([^"]*)"', text)]
    assert series[0]["lines"][2]["values"][-3] == pytest.approx(FIGURES.freshness.quantile(0.99), rel=1e-5)
    control = ControlFolder(tmp_path, "orders")
    assert "Nothing is recorded" in charts_fragment(read_history(control, period, NOW), period, NOW)


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    control, period = ControlFolder(tmp_path, "orders"), period_named("1h")
    assert period is not None
    incident = record_incident(control, "refused", "no")
    outcomes = control.folder / "outcomes"
    outcomes.mkdir()
    (outcomes / "torn.json").write_text("{")
    control.maintenance_history.write_text('torn\n{"started_at_ms": 1, "ended_at_ms": 2}\n')
    found = read_history(control, period, incident.at + 5)
    assert [mark.what for mark in found.marks] == ["refused: no"]
    assert len(found.problems) == 1


def test_a_sparkline_has_gaps_and_only_the_last_hour() -> None:
    line = sparkline([(100, 9.0), (6400, 1.0), (6460, 2.0), (6700, 1.0)], 7200.0)
    assert line is not None
    assert (line.highest_seconds, line.latest_seconds) == (2.0, 1.0)
    assert line.path.count("M") == 2 and line.path.count("L") == 1
    assert sparkline([(100, 9.0)], 7200.0) is None


def test_a_sparkline_is_read_again_when_its_file_has_changed(tmp_path: Path) -> None:
    control, sparklines = ControlFolder(tmp_path, "orders"), Sparklines()
    assert sparklines.read(tmp_path, ["orders"], NOW) == {}
    for number in (3, 2):
        append_buckets(control, MINUTE, [Bucket(MINUTE.start_of(NOW - 60 * number), FIGURES)], NOW)
        found = sparklines.read(tmp_path, ["orders"], NOW)["orders"]
        assert found.path.count("L") == 3 - number
        assert found.latest_seconds == FIGURES.freshness.quantile(0.99)
