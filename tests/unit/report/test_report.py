"""The daily report: from real files of the state to the page, the message and the command; each day once."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from tests.support.streams.stand_ins import ORDERS
from typer.testing import CliRunner

from lakebound.alerts.model import MessageKind
from lakebound.alerts.store import AlertState, AlertStore
from lakebound.alerts.wording import Links, body_of, html_of, title_of
from lakebound.cli import app
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.histogram import histogram_of
from lakebound.control.rollup_book import RollupBook
from lakebound.control.rollup_files import rollup_file
from lakebound.control.rollups import HOUR, Bucket, Figures, TableFigures
from lakebound.control.summaries import ProofSummary, write_proof
from lakebound.operations.maintenance.health_history import HealthReading, record_health
from lakebound.report.daily import due_day, message_of, report_if_due
from lakebound.report.facts import read_day
from lakebound.report.kept import KEPT_DAYS, NoSuchDayError, report_of_day, reports_folder
from lakebound.report.model import DayReport, start_of
from lakebound.report.page import markdown_of
from lakebound.report.summary import report_of
from lakebound.settings import Settings, load_settings

DAY = date(2026, 11, 24)
BEGINS = int(start_of(DAY))
NEXT_MORNING = BEGINS + 86_400 + 600.0
TABLE = "delta:lake.orders"
SECRET = "canary|<b>5a0c9d21"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A machine on which ``orders`` promises a freshness of 5 s, and ``quiet`` never ran."""
    monkeypatch.setenv("LAKEBOUND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(tmp_path / "pipelines"))
    (tmp_path / "pipelines").mkdir()
    for name in ("orders", "quiet"):
        spec = {**ORDERS, "pipeline": name, "tables": [{"format": "delta", "name": f"lake.{name}"}]}
        spec["objectives"] = {"freshness_p99_seconds": 5}
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(yaml.safe_dump(spec))
    return load_settings()


def land(settings: Settings, at: int, rows: int, seconds: float, bad: int = 0) -> None:
    """Count what one batch landed so many seconds after the day began, as an application does."""
    figures = Figures(
        tables={TABLE: TableFigures(1, rows, float(at))},
        read=rows + bad,
        quarantined=bad,
        lag_records=7,
        freshness=histogram_of(seconds, rows + bad),
        batches={"direct": histogram_of(2.0)},
        cpu_seconds=1.1,
    )
    RollupBook(ControlFolder(settings.home, "orders"), at).write([Bucket(at, figures)], at + 10)


def day_of_orders(settings: Settings) -> ControlFolder:
    """Land before, on and after the day; an incident, readings and a proof are there, too."""
    control = ControlFolder(settings.home, "orders")
    for at, rows, seconds, bad in (
        (BEGINS - 10, 1_000_000, 0.04, 0),
        (BEGINS, 900, 0.04, 50),
        (BEGINS + 14 * 3600, 40, 9.0, 10),
        (BEGINS + 86_390, 100, 0.04, 0),
        (BEGINS + 86_400, 1_000_000, 0.04, 0),
    ):
        land(settings, at, rows, seconds, bad)
    for number, day in enumerate(("20261123", "20261124", "20261125")):
        body = {"id": day, "pipeline": "orders", "kind": "refused", "at": BEGINS + number, "runbook": "topic-recreated"}
        write_json(control.incidents / f"{day}T101500-abcdef.json", {**body, "what": f"{SECRET} of {day}\nsecond line"})
    record_health(
        control,
        [
            HealthReading(
                at_ms=(BEGINS + at) * 1000, table=TABLE, score=90, files=files, small_files=0, size_bytes=files * 1000
            )
            for at, files in ((-3600, 10), (3600, 90), (7200, 25), (86_400, 700))
        ],
    )
    write_proof(control, ProofSummary(ok=False, sentence="missing", missing=3, duplicated=0, at=NEXT_MORNING - 1200))
    return control


def made(settings: Settings) -> DayReport:
    return report_of(read_day(settings, DAY, NEXT_MORNING))


def test_a_day_is_summed_from_the_state_and_holds_nothing_of_its_neighbours(settings: Settings) -> None:
    day_of_orders(settings)
    orders, quiet = made(settings).pipelines
    assert (orders.hours, orders.read, orders.quarantined, orders.rows) == (3, 1100, 60, 1040)
    (table,) = orders.tables
    assert (table.rows, table.commits, table.files, table.files_added, table.bytes_added) == (1040, 3, 25, 15, 15_000)
    fresh = orders.freshness
    assert fresh.p50_seconds is not None and fresh.p50_seconds <= 0.05
    assert fresh.p99_seconds is not None and 7 < fresh.p99_seconds <= 10
    assert (fresh.worst_hour_at, fresh.is_met) == (BEGINS + 14 * 3600, False)
    assert [incident.what for incident in orders.incidents] == [f"{SECRET} of 20261124"]
    assert (orders.busy_seconds, orders.cpu_seconds) == (6.0, 3.3)
    assert orders.cpu_seconds_per_million == pytest.approx(3000)
    assert quiet.cpu_seconds_per_million is None
    assert (quiet.pipeline, quiet.has_figures, quiet.freshness.is_met) == ("quiet", False, None)


def test_the_page_says_what_was_missed_and_links_the_runbook(settings: Settings) -> None:
    day_of_orders(settings)
    page = markdown_of(made(settings), Links(runbooks="https://wiki/{runbook}"))
    for part in (
        "# Lakebound on 2026-11-24",
        "2 pipelines: 1,100 records read, 1,040 rows landed, 60 bad records, 1 incident, 1 freshness objective missed, "
        "1 pipeline without figures.",
        "| orders | 1,100 | 0 | 60 | 5.45% | 7 | 6 s | 3 s | 3,000.0 s | **missing 3, duplicated 0** (11-24 23:50) |",
        "| quiet | no figures for this day |",
        "**5 s, missed** | 14:00 |",
        "| orders | `delta:lake.orders` | 1,040 | 3 | 25 (+15) | 25 kB (+15 kB) |",
        "[topic-recreated](https://wiki/topic-recreated)",
        "Executors on other machines",
    ):
        assert part in page
    assert "<b>" not in page
    widths = {}
    for block in page.split("\n\n"):
        if block.startswith("| "):
            lines = block.splitlines()
            widths[lines[0]] = {line.replace("\\|", "").count("|") for line in lines}
    assert len(widths) == 4 and all(len(found) == 1 for found in widths.values()), "no text breaks a table"


def test_a_day_of_which_nothing_is_known_says_so(settings: Settings) -> None:
    report = made(settings)
    assert not report.has_figures
    assert "No pipeline ran." in markdown_of(report, Links())


def test_on_the_first_day_the_report_is_of_that_day_so_far(settings: Settings) -> None:
    land(settings, BEGINS + 86_400 + 60, 70, 0.04)
    first = report_of_day(settings, None, NEXT_MORNING)
    assert (first.day, first.is_over) == (DAY + timedelta(days=1), False)
    assert "70 rows landed" in (page := markdown_of(first, Links())) and "So far, until 00:10" in page
    assert report_of_day(settings, DAY, NEXT_MORNING).day == DAY, "a day that is asked for is that day"
    land(settings, BEGINS + 60, 9, 0.04)
    assert report_of_day(settings, None, NEXT_MORNING).day == DAY


def test_where_nothing_ever_ran_the_report_is_of_the_last_day(settings: Settings) -> None:
    assert report_of_day(settings, None, NEXT_MORNING).day == DAY


def test_a_proof_of_nothing_is_not_called_complete(settings: Settings) -> None:
    control = day_of_orders(settings)
    write_proof(control, ProofSummary(ok=True, sentence="nothing", is_empty=True, at=NEXT_MORNING - 1200))
    page = markdown_of(made(settings), Links())
    assert "nothing landed yet (11-24 23:50)" in page and "complete (" not in page


def test_a_file_that_cannot_be_read_is_named_and_hides_nothing_else(settings: Settings) -> None:
    control = day_of_orders(settings)
    (control.incidents / "20261124T090000-abcdef.json").write_text('{"kind": "canary-77"}')
    rollup_file(control, HOUR).unlink()
    rollup_file(control, HOUR).mkdir()
    orders, _ = made(settings).pipelines
    assert (orders.read, len(orders.incidents), len(orders.tables)) == (0, 1, 1)
    page = markdown_of(made(settings), Links())
    assert "the rollups cannot be read: IsADirectoryError" in page
    assert "20261124T090000-abcdef.json cannot be read: ValidationError" in page
    assert "canary-77" not in page


def test_the_message_has_figures_and_no_text_of_an_incident(settings: Settings) -> None:
    day_of_orders(settings)
    message = message_of(made(settings))
    body = body_of(message, Links(airflow="http://airflow"))
    assert (body["kind"], body["severity"], body["pipeline"], body["page"]) == (
        "report",
        "info",
        "*",
        "http://airflow/lakebound/",
    )
    assert body["alerts"][0]["evidence"] == {
        "day": "2026-11-24", "pipelines": 2, "records_read": 1100, "rows": 1040,
        "bad_records": 60, "incidents": 1, "cpu_seconds": 3, "objectives_missed": 1,
    }  # fmt: skip
    assert "orders: 1,100 records read, 1,040 rows landed, bad 60 (5.45%)" in body["reason"]
    assert (
        "of 5 s: missed, CPU 3 s (3,000.0 s per million records), 1 incident\nquiet: no figures for this day" in body["reason"]
    )
    assert "canary" not in json.dumps(body) + html_of(message, Links())
    assert title_of(message).startswith("[lakebound] info: all pipelines: daily report: 2026-11-24: 2 pipelines: 1,100 records")


@pytest.mark.parametrize(
    ("clock", "reported", "due"),
    [
        ("2026-11-25T00:09:59", date(2026, 11, 23), None),
        ("2026-11-25T00:10:00", date(2026, 11, 23), DAY),
        ("2026-11-25T23:59:00", DAY, None),
        ("2026-11-25T12:00:00", date(2026, 11, 1), DAY),
        ("2026-11-25T12:00:00", None, DAY),
        ("2026-11-20T12:00:00", DAY, None),
    ],
)
def test_a_report_is_due_once_a_day_and_old_days_are_not_made_up_for(
    clock: str, reported: date | None, due: date | None
) -> None:
    now = datetime.fromisoformat(clock).replace(tzinfo=UTC).timestamp()
    assert due_day(AlertState(reported_day=reported), now) == due


def test_each_day_is_queued_and_kept_once_and_a_new_installation_begins_silently(settings: Settings) -> None:
    store = AlertStore(settings.home)
    first = report_if_due(settings, NEXT_MORNING - 86_400)
    assert first is not None and not first.has_figures
    assert store.read().outbox == () and not reports_folder(settings).exists()
    day_of_orders(settings)
    assert report_if_due(settings, NEXT_MORNING) is not None
    assert report_if_due(settings, NEXT_MORNING + 60) is None
    ((channel, message),) = [(one.channel, one.message) for one in store.read().outbox]
    assert (channel, message.kind, message.id) == ("lakebound_webhook", MessageKind.REPORT, "report-2026-11-24")
    kept = report_of_day(settings, DAY, NEXT_MORNING + 80 * 86_400)
    assert kept == made(settings), "it outlives the figures that it was made of"
    assert (reports_folder(settings) / "2026-11-24.md").read_text() == markdown_of(kept, Links())
    # A later day without any figures is told, too; and what is too old goes.
    later = NEXT_MORNING + KEPT_DAYS * 86_400
    assert report_if_due(settings, later) is not None
    assert len(store.read().outbox) == 2
    newest = DAY + timedelta(days=KEPT_DAYS)
    assert sorted(file.name for file in reports_folder(settings).iterdir()) == [f"{newest}.json", f"{newest}.md"]


def test_the_command_prints_and_writes_the_page_of_a_day(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day_of_orders(settings)
    monkeypatch.setattr("time.time", lambda: NEXT_MORNING)
    page = markdown_of(made(settings), Links())
    assert CliRunner().invoke(app, ["report"]).stdout == page
    file = tmp_path / "page.md"
    assert CliRunner().invoke(app, ["report", "--day", "2026-11-24", "--markdown", str(file)]).exit_code == 0
    assert file.read_text() == page
    assert "So far, until 00:10." in CliRunner().invoke(app, ["report", "--day", "2026-11-25"]).stdout
    today = json.loads(CliRunner().invoke(app, ["report", "--day", "2026-11-25", "--json"]).stdout)
    assert [one["read"] for one in today["pipelines"]] == [1_000_000, 0]


@pytest.mark.parametrize(("day", "said"), [(DAY + timedelta(days=2), "not begun"), (DAY - timedelta(days=62), "for 60 days")])
def test_a_day_that_is_not_to_be_had_is_refused_with_the_reason(settings: Settings, day: date, said: str) -> None:
    with pytest.raises(NoSuchDayError, match=said):
        report_of_day(settings, day, NEXT_MORNING)
