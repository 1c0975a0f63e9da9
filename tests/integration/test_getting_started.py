"""docs/getting-started.md does what it says: its commands are taken from the page and run one after the other.

The short form leaves out the trial, and ends where something is broken: test_beginning.py has trials, tests/spark/test_edits.py
edits that are refused, and test_keys_and_headers.py records that a changed YAML releases.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.streams.long_form import LONG_FORM
from tests.support.waiting import HANGS_SECONDS

from lakebound.local.broker import Broker

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[2]
STARTS = ("dags", "spark_apps", "lakebound.cli.process")
TRIAL = "lakebound try payments --records 100\n"
BLOCK = re.compile(r"(?:<!-- ([^>]*) -->\n)?```bash\n(.*?)```", re.DOTALL)


def test_the_page_can_be_followed(broker: Broker, tmp_path: Path) -> None:
    for name in ("include", "spark_apps"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LAKEBOUND_")}
    if "LAKEBOUND_JARS" in os.environ:
        environment["LAKEBOUND_JARS"] = os.environ["LAKEBOUND_JARS"]
    environment |= {"LAKEBOUND_KAFKA": broker.bootstrap_servers, "COLUMNS": "200"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    said = ""
    for note, commands in BLOCK.findall((REPOSITORY / "docs" / "getting-started.md").read_text()):
        if note.startswith("not run"):
            continue
        if not LONG_FORM:
            if note == "exits with 1":
                break
            commands = commands.replace(TRIAL, "")
        command = ["bash", "-euo", "pipefail", "-c", commands]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=HANGS_SECONDS)
        assert done.returncode == (1 if note == "exits with 1" else 0), f"{commands}\n{done.stdout}\n{done.stderr}"
        said += f"$ {commands}{done.stdout}\n"
    assert "payments: valid" in said
    landed = "since its start: 1,000 records read: 1,000 landed (1,000 rows in delta:lake.payments), 0 filtered, 0 quarantined"
    assert landed in said
    assert "amount_eur: DECIMAL(18,2)" in said, "money stays DECIMAL"
    assert re.search(r"CHF\W+500\W", said) and re.search(r"EUR\W+500\W", said)
    assert "missing 0" in said
    if LONG_FORM:
        assert_tried_broken_and_mended(said)


def assert_tried_broken_and_mended(said: str) -> None:
    """Check what the page's other commands have said."""
    assert "100 records: 100 give 100 rows, 0 are filtered, 0 are bad" in said
    assert "write partition_by: [paid_at_date]" in said
    assert "since its start: 1 record read: 0 landed (0 rows in delta:lake.payments), 0 filtered, 1 quarantined" in said
    assert "currency" in said.partition("$ cat > send_bad.py")[2].partition("$ sed")[0], "the reason names the field"
    mended = said.rpartition("--replay")[2]
    assert "12.50" in mended and "1 rows" not in mended.partition("12.50")[0], mended
    assert said.count("missing 0") >= 2, said
    assert re.search(r"delta:lake.payments +1,001 +1,001 +0 +0 ", mended), mended
    assert "delta:lake.payments: 1 of its RECORDS and FILTERED were in quarantine first" in mended
