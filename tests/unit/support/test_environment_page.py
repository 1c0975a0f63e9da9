"""docs/environment.md names every variable that is read."""

from __future__ import annotations

import re
from pathlib import Path

from lakebound.settings import load_settings

REPOSITORY = Path(__file__).parents[3]
PAGE = (REPOSITORY / "docs" / "environment.md").read_text()


def test_every_setting_is_on_the_page() -> None:
    named = set(re.findall(r"^\| `(LAKEBOUND_[A-Z_]+)`", PAGE, re.MULTILINE))
    assert named >= set(load_settings({}).environment())


def test_no_module_reads_a_variable_of_which_the_page_is_silent() -> None:
    read = {
        name
        for folder in ("include", "plugins", "spark_apps", "dags")
        for path in (REPOSITORY / folder).rglob("*.py")
        for name in re.findall(r"env[^\n]*[\"'](LAKEBOUND_[A-Z_]+)", path.read_text())
    }
    internal = {"LAKEBOUND_FAULTS", "LAKEBOUND_STARTED_AS"}
    assert read - internal <= set(re.findall(r"LAKEBOUND_[A-Z_]+", PAGE))
