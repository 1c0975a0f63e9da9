"""The page in a real browser: it shows the pipelines, nothing in the browser's console is wrong, and markup stays text."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lakebound.control.folder import ControlFolder
from lakebound.control.recent_ledger import read_recent_ledger
from lakebound.control.rollup_files import read_buckets
from lakebound.control.rollups import HOUR
from lakebound.settings import Settings
from tests.support.airflow.page_server import served_page
from tests.support.airflow.shown_history import copy_rollups, write_history
from tests.support.airflow.shown_pipelines import MARKUP, shown_settings, write_crash_loop, write_many

pytestmark = [pytest.mark.airflow, pytest.mark.timeout(240)]

COUNT = 100


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A hundred pipelines with thirty days behind them."""
    found = shown_settings(tmp_path_factory.mktemp("shown"))
    names = write_many(found, COUNT)
    write_crash_loop(found, "loops")
    controls = [ControlFolder(found.home, name) for name in names]
    write_history(controls[0], time.time())
    copy_rollups(controls[0], controls[1:])
    return found


@pytest.fixture(scope="module")
def address(settings: Settings) -> Iterator[str]:
    """The page behind a base path, for somebody who may do all."""
    with served_page(settings) as found:
        yield found


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab of 1,200 px, and at its end no error in its console."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="dark")
    tab = context.new_page()
    wrong: list[str] = []
    tab.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") and _is_ours(said) else None)
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("dialog", lambda dialog: wrong.append(dialog.message))
    yield tab
    context.close()
    assert wrong == []


def _is_ours(said: Any) -> bool:
    """A browser asks each server for an icon by itself."""
    return not str(said.location.get("url", "")).endswith("/favicon.ico")


def test_the_overview_shows_all_and_filter_and_order_stay(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("tbody tr")
    assert page.locator("tbody tr").count() == COUNT + 1
    assert {page.locator("tbody tr").nth(number).locator("th").inner_text() for number in (0, 1)} == {"loops", "pipeline_013"}
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    page.wait_for_selector("svg.spark")
    assert page.locator("svg.spark").count() == COUNT
    page.fill("#filter", "pipeline_00")
    page.get_by_role("button", name="Lag").click()
    page.get_by_role("button", name="Lag").click()
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("Lag")
    page.reload()
    page.wait_for_selector("tbody tr")
    assert page.input_value("#filter") == "pipeline_00"
    names = page.locator("tbody th").all_inner_texts()
    assert len(names) == 10 and names[0] == "pipeline_008" and page.locator("th[aria-sort=descending]").count() == 1


def test_the_focus_stays_while_the_page_reads_again(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="pipeline_042").focus()
    with page.expect_response("**/api/overview", timeout=30_000):
        pass
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        assert page.evaluate("document.activeElement.textContent") == "pipeline_042"


def test_one_pipeline_markup_stays_text_and_its_runbook_opens(page: Any, address: str) -> None:
    page.goto(f"{address}pipelines/pipeline_013?period=30d")
    page.wait_for_selector("#head-alerts")
    assert MARKUP in page.locator("#view").inner_text()
    page.wait_for_selector("#chart-freshness")
    assert MARKUP in page.locator("#chart-reasons").inner_text()
    assert page.locator("img").count() == 0 and page.title() == "pipeline_013 – Lakebound"
    page.locator("summary").first.click()
    page.get_by_text("The stream is behind").first.wait_for()
    page.get_by_role("button", name="Stop").click()
    assert page.get_by_role("dialog").inner_text().startswith("Stop: pipeline_013")
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0


def test_dark_and_light_follow_the_system(page: Any, address: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page.goto(address)
    dark = page.evaluate(ground)
    page.emulate_media(color_scheme="light")
    assert (dark, page.evaluate(ground)) == ("rgb(20, 25, 31)", "rgb(255, 255, 255)")


def test_charts_of_thirty_days_show_what_the_rollups_hold(page: Any, address: str, settings: Settings) -> None:
    began = time.monotonic()
    page.goto(f"{address}pipelines/pipeline_000?period=30d")
    page.wait_for_selector("#chart-freshness svg")
    assert time.monotonic() - began < 60, "0.6 s on an idle machine"
    series = json.loads(page.locator("#chart-freshness svg").get_attribute("data-series"))
    assert 300 < len(series["times"]) <= 400
    at = series["times"][100]
    both = read_buckets(ControlFolder(settings.home, "pipeline_000"), HOUR, at)[:2]
    assert [bucket.at for bucket in both] == [at, at + 3600]
    freshness = both[0].figures.freshness.plus(both[1].figures.freshness)
    shown = [line["values"][100] for line in series["lines"]]
    assert shown == pytest.approx([freshness.quantile(share) for share in (0.5, 0.9, 0.99)], rel=1e-5)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    assert page.locator("[aria-current]").inner_text() == "30 days"


def test_a_chart_is_read_by_the_keyboard_and_as_a_table(page: Any, address: str) -> None:
    page.goto(f"{address}pipelines/pipeline_000")
    page.locator(".periods a", has_text="24 hours").press("Enter")
    page.wait_for_url("**?period=24h")
    figure = page.locator("#chart-lag")
    figure.locator("svg").focus()
    page.keyboard.press("Home")
    first = figure.locator(".readout").inner_text()
    page.keyboard.press("ArrowRight")
    assert figure.locator(".readout").inner_text() != first
    figure.locator("summary").click()
    rows = figure.locator("tbody tr")
    rows.first.wait_for()
    assert rows.count() == 361
    said = rows.last.locator("td").all_inner_texts()
    assert first == f"{said[0]}: lag {said[1]}"


def test_partitions_have_bars_and_a_batch_opens(page: Any, address: str, settings: Settings) -> None:
    ledger = read_recent_ledger(ControlFolder(settings.home, "pipeline_000"))
    assert ledger is not None
    page.goto(f"{address}pipelines/pipeline_000")
    page.wait_for_selector("svg.bar")
    assert page.locator("svg.bar .missing").count() == 1
    first = page.locator(".bars tbody tr").first.locator("td").all_inner_texts()
    assert first[:6] == ["orders", "1", "60,000", "60,002", "2", "31,000 to 33,499"]
    rows = page.locator(".batches tbody tr")
    assert rows.count() == len(ledger.batches)
    bad = next(number for number, batch in enumerate(reversed(ledger.batches)) if batch.quarantined)
    rows.nth(bad).locator("summary").press("Enter")
    assert f"does_not_fit: amount{MARKUP}" in rows.nth(bad).locator("dl").inner_text()
    page.locator("#quality table").nth(2).wait_for()
    said = page.locator("#quality").inner_text()
    page.wait_for_selector(".samples tbody tr")
    assert page.locator(".samples tbody tr").count() == 6
    assert MARKUP in page.locator(".samples").inner_text() and page.locator("img").count() == 0
    assert f"amount is positive{MARKUP}" in said and "orders/1:59871" in said and "SECRET-VALUE" not in said
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200


def test_a_table_has_its_history_as_a_time_line_and_leads_back(page: Any, address: str) -> None:
    page.goto(f"{address}pipelines/pipeline_000")
    page.get_by_role("link", name="delta:lake.pipeline_000", exact=True).click()
    page.wait_for_selector("svg.timeline")
    assert page.title() == "delta:lake.pipeline_000 – Lakebound"
    assert page.locator("svg.timeline .reset").count() == 1 and page.locator("svg.timeline .usual").count() > 50
    first = page.locator(".targets tbody tr").first.locator("td").all_inner_texts()
    assert first[1:4] == ["812", "landed", "it is current, or a reader needs it"]
    assert "lakebound rewind pipeline_000 --to TIME" in page.locator("#table").inner_text()
    assert page.locator(".steps tbody tr").count() == 50
    assert page.evaluate("document.documentElement.scrollWidth") <= 1200
    page.get_by_role("link", name="pipeline_000", exact=True).click()
    page.wait_for_selector("#chart-freshness")
    assert page.title() == "pipeline_000 – Lakebound"
