"""The page about the quarantine names each reason for which a record does not land, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from lakebound.formats.reasons import NOT_LANDED

PAGE = Path(__file__).parents[3] / "docs/how-to/quarantine.md"
ROW = re.compile(r"^\| ((?:`\w+`(?:, )?)+) \| ", re.MULTILINE)


def test_each_reason_is_in_the_table_once() -> None:
    table = PAGE.read_text().partition("| reason | the record |")[2].partition("\n\n")[0]
    named = [name for row in ROW.findall(table) for name in re.findall(r"\w+", row)]
    assert sorted(named) == sorted(NOT_LANDED)
    assert "| a name that is not in this table | was landed, and a validation copied it here" in table
