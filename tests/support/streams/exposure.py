"""Where a secret of a running application might show: its command lines, Spark's web UI, and files."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.support.live_processes import asked_of_each, family_of
from tests.support.streams.applications import RunningApplication
from tests.support.waiting import HANGS_SECONDS

UI_PAGES = ("/environment/", "/SQL/", "/StreamingQuery/", "/jobs/", "/api/v1/applications")


def command_lines(application: RunningApplication) -> list[str]:
    """Return the command line of each of its processes."""
    return [" ".join(line) for line in asked_of_each(family_of(application.process.pid), psutil.Process.cmdline).values()]


def ui_pages(application: RunningApplication) -> Iterator[tuple[str, str]]:
    """Yield address and content of the pages of Spark's web UI, and of its plans and settings as JSON."""
    progress = application.progress
    assert progress is not None and progress.spark_ui
    for page in UI_PAGES:
        yield page, _page(progress.spark_ui + page)
    (spark,) = json.loads(_page(f"{progress.spark_ui}/api/v1/applications"))
    for page in (f"/api/v1/applications/{spark['id']}/sql?details=true", f"/api/v1/applications/{spark['id']}/environment"):
        yield page, _page(progress.spark_ui + page)


def files_with(text: str, *folders: Path) -> list[Path]:
    """Return the files below the folders in which a text stands.

    Not for the folder of a SQLite catalog that this process has read: closing its files would take away SQLite's own locks.
    """
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [path for path in files if text.encode() in path.read_bytes()]


def _page(address: str) -> str:
    try:
        with urllib.request.urlopen(address, timeout=HANGS_SECONDS) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
