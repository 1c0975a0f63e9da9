"""``make screenshots``: pictures of the page over made-up pipelines, by Chromium."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lakebound.control.folder import ControlFolder
from lakebound.settings import Settings
from tests.support.airflow import shown_pipelines
from tests.support.airflow.page_server import CHROMIUM, served_page
from tests.support.airflow.shown_history import copy_rollups, write_history

MAX_BYTES = 150_000
WIDTH = 1200
PIPELINE = "pipeline_000"
DESCRIBED = (
    ("page-overview-light", "light", "", "tbody tr", None, 620),
    ("page-charts-light", "light", f"pipelines/{PIPELINE}?period=6h", "#chart-freshness", "#charts-head", 540),
    ("page-table-light", "light", f"pipelines/{PIPELINE}/tables/delta:lake.{PIPELINE}", "svg.timeline", None, 620),
    ("page-pipeline-light", "light", f"pipelines/{PIPELINE}", "#quality table", "#ledger-head", 900),
)
"""Name, colours, address, what must be there, what is at the top, and the height in pixels."""


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        raise SystemExit("there is no Chromium on this machine: on Debian and Ubuntu install the package chromium")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as state, served_page(_example(Path(state))) as address, sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, colours, path, awaited, top, height in DESCRIBED:
            context = browser.new_context(viewport={"width": WIDTH, "height": height}, color_scheme=colours)
            page = context.new_page()
            page.goto(f"{address}{path}")
            page.wait_for_selector(awaited)
            _take(page, folder / f"{name}.png", top)
            context.close()
        browser.close()


def _example(state: Path) -> Settings:
    shown_pipelines.MARKUP = ""  # tests of the page need it; a picture does not
    settings, now = shown_pipelines.shown_settings(state), time.time()
    names = shown_pipelines.write_many(settings, 12)
    controls = [ControlFolder(settings.home, name) for name in names]
    write_history(controls[0], now)
    copy_rollups(controls[0], controls[1:])
    return settings


def _take(page: Any, file: Path, top: str | None) -> None:
    if top is not None:
        page.evaluate("(selector) => document.querySelector(selector).scrollIntoView()", top)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=str(file))
    size = file.stat().st_size
    print(f"{file}: {size // 1000} kB")
    if size > MAX_BYTES:
        raise SystemExit(f"{file} has {size} bytes; at most {MAX_BYTES} may be in the repository")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
