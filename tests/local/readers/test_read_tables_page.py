"""What docs/how-to/read-tables.md shows is run; its Spark SQL is in ``tests/spark``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.support.readers.frames import rows_in
from tests.support.readers.reading_page import PAGE, PAID, ROWS, blocks, make_page_tables
from tests.support.streams.command_line import lakebound

from lakebound.settings import load_settings
from lakebound.tables.places import places_of

PYTHON = blocks("python")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which Lakebound was started, with the page's tables in its default home."""
    for name in ("LAKEBOUND_HOME", "LAKEBOUND_WAREHOUSE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LAKEBOUND_PIPELINES", str(PAGE.parents[2] / "include" / "pipelines"))
    monkeypatch.chdir(tmp_path)
    make_page_tables(places_of(load_settings(), "default"))
    return tmp_path


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_snippet_reads_the_table(number: int, here: Path) -> None:
    names: dict[str, Any] = {}
    exec(PYTHON[number], names)
    assert rows_in(names["frame"]) == (PAID if "'paid'" in PYTHON[number] or '"paid"' in PYTHON[number] else ROWS)


def test_every_tool_has_a_snippet_for_each_format() -> None:
    for tool in ("to_pandas", "import polars", "duckdb"):
        assert sum(tool in block for block in PYTHON) == 2, tool
    assert any("to_arrow()" in block for block in PYTHON)
    assert len(blocks("sql")) == 2 and len(blocks("properties")) == 1


def test_the_commands_answer(here: Path) -> None:
    (block,) = blocks("sh")
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    assert [command[:2] for command in commands] == [["lakebound", "tables"]] * 2 + [["lakebound", "query"]] * 2
    shown = [lakebound(*command[1:]).stdout for command in commands]
    assert "sales.orders" in shown[0] and "SELECT * FROM ice.sales.orders" in shown[1]
    assert "paid" in shown[2] and "3 rows" in shown[2]
    assert shown[3].splitlines()[:2] == ["order_id,total", "o-8,12.0"]
