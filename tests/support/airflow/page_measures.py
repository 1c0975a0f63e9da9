"""Measures the page with a hundred made-up pipelines and thirty days: requests, bytes, first paint, data; by Chromium.

Exit code 1 where a first paint takes a second or more, or data two seconds. On a machine that has nothing else to do.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from lakebound.control.folder import ControlFolder
from tests.support.airflow.page_server import CHROMIUM, served_page
from tests.support.airflow.shown_history import copy_rollups, write_history
from tests.support.airflow.shown_pipelines import shown_settings, write_many

COUNT, LOADS = 100, 5
PAGES = (
    ("overview", "", "svg.spark"),
    ("pipeline, 1 hour", "pipelines/pipeline_000", "#chart-freshness svg"),
    ("pipeline, 30 days", "pipelines/pipeline_000?period=30d", "#chart-freshness svg"),
    ("table", "pipelines/pipeline_000/tables/delta:lake.pipeline_000", "svg.timeline"),
)
"""Name, address, and what is there when the data is."""
MAX_PAINT_MS, MAX_DATA_MS = 1000.0, 2000.0
PAINT = "performance.getEntriesByType('paint').find(one => one.name === 'first-contentful-paint')?.startTime"


def main() -> int:
    """Measure, print a table, and return the exit code."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        print("there is no Chromium on this machine: on Debian and Ubuntu install the package chromium")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        settings = shown_settings(Path(folder))
        controls = [ControlFolder(settings.home, name) for name in write_many(settings, COUNT)]
        write_history(controls[0], time.time())
        copy_rollups(controls[0], controls[1:])
        before = psutil.Process().memory_info().rss
        with served_page(settings) as address, sync_playwright() as running:
            browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            slow = [_measure(browser, name, f"{address}{path}", awaited) for name, path, awaited in PAGES]
            browser.close()
            grown = psutil.Process().memory_info().rss - before
    print(f"memory of the process that serves, with the test's own parts: {grown >> 20} MiB more than before")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    return 1 if any(slow) else 0


def _measure(browser: Any, name: str, address: str, awaited: str) -> bool:
    """Load a page some times with an empty cache, print the medians, and return whether it is too slow."""
    paints, datas, sizes, counts = list[float](), list[float](), list[int](), list[int]()
    for _ in range(LOADS):
        context = browser.new_context(viewport={"width": 1200, "height": 900})
        page = context.new_page()
        got: list[int] = []
        page.on("requestfinished", lambda request, got=got: got.append(request.sizes()["responseBodySize"]))
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_selector(awaited)
        datas.append((time.perf_counter() - began) * 1000)
        page.wait_for_load_state("networkidle")
        paints.append(float(page.evaluate(PAINT)))
        sizes.append(sum(got))
        counts.append(len(got))
        context.close()
    print(
        f"{name}: {median(counts):.0f} requests, {median(sizes) / 1000:.0f} kB, first paint {median(paints):.0f} ms, "
        f"data {median(datas):.0f} ms (of {LOADS} loads: at best {min(paints):.0f} and {min(datas):.0f})"
    )
    return min(paints) >= MAX_PAINT_MS or min(datas) >= MAX_DATA_MS


if __name__ == "__main__":
    sys.exit(main())
