"""The bars of the partitions and the newest batches: what is landed, missing and waiting, and markup that stays text."""

from __future__ import annotations

import re
from pathlib import Path

from lakebound.control.folder import ControlFolder
from lakebound.control.progress import Progress
from lakebound.control.recent_ledger import LandedBatch, RecentLedger, TableCommit
from lakebound_airflow.page.coverage import CoverageRow, coverage_rows, read_ledger
from lakebound_airflow.page.ledger_fragment import bar, ledger_fragment

MARKUP = "<script>alert(1)</script>"
PROGRESS = Progress(
    pipeline="orders",
    app_id="a",
    started_at=1.0,
    updated_at=2.0,
    high_water_marks={"orders": {0: 100, 1: 7}},
    latest_offsets={"orders": {0: 150, 2: 9}},
)
BATCH = LandedBatch(
    at=1_700_000_000.0,
    epoch=2,
    batch=41,
    ranges={"orders": {0: ((80, 100),)}},
    partitions=70,
    read=20,
    quarantined=3,
    reasons={MARKUP: 3},
    lane="direct",
    seconds=0.25,
    tables={"delta:lake.orders": TableCommit("812", 17)},
)
LEDGER = RecentLedger(1_700_000_010.0, {"orders": {0: ((0, 40), (60, 100))}}, (BATCH,))


def test_a_row_has_what_is_landed_missing_and_waiting() -> None:
    first, second, third = coverage_rows(LEDGER, PROGRESS)
    assert (first.landed, first.missing, first.bad, first.lag) == (((0, 40), (60, 100)), ((40, 60),), ((80, 100),), 50)
    assert (second.next_offset, second.end_offset, second.lag) == (7, None, None)
    assert (third.next_offset, third.end_offset, third.lag) == (None, 9, None)
    assert coverage_rows(LEDGER, None)[0].next_offset == 100
    landed_since = PROGRESS.model_copy(update={"high_water_marks": {"orders": {0: 500}}, "latest_offsets": {"orders": {0: 9}}})
    ahead = coverage_rows(RecentLedger(), landed_since)[0]
    assert (ahead.next_offset, ahead.end_offset, ahead.lag) == (500, 500, 0), "the end was asked for before the last batch"


def test_a_bar_is_as_long_as_its_offsets_and_nothing_is_too_narrow_to_be_seen() -> None:
    def blocks(row: CoverageRow) -> list[tuple[str, float, float]]:
        found = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="\d+" width="([\d.]+)"', bar(row))
        return [(kind, float(x), float(width)) for kind, x, width in found]

    row = CoverageRow("orders", 0, ((0, 40), (60, 100)), ((40, 60),), (), 100, 200)
    assert blocks(row) == [("landed", 0, 100), ("landed", 150, 100), ("missing", 100, 50), ("waiting", 250, 250)]
    late = CoverageRow("orders", 0, ((10**9, 2 * 10**9),), (), (), 2 * 10**9, 2 * 10**9 + 1)
    assert blocks(late) == [("landed", 0, 500), ("waiting", 498, 2)]
    assert blocks(CoverageRow("orders", 0, next_offset=50, end_offset=100)) == [("waiting", 0, 500)], "who knows"
    assert bar(CoverageRow("orders", 0)) == ""


def test_a_batch_opens_into_its_ranges_tables_and_reasons_and_markup_stays_text() -> None:
    text = ledger_fragment(coverage_rows(LEDGER, PROGRESS), LEDGER, [MARKUP])
    assert "<script" not in text and text.count("&lt;script&gt;") == 2
    for words in (
        "80 to 99",
        "40 to 59",
        "69 more partitions",
        "17 rows, version 812",
        "3 × &lt;script",
        ">Batch 41</summary>",
    ):
        assert words in text, words


def test_a_file_that_is_torn_is_named(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    assert read_ledger(control) == (RecentLedger(), [])
    control.folder.mkdir(parents=True)
    control.recent_ledger.write_text("{")
    assert "recent-ledger.json" in read_ledger(control)[1][0]
    assert "No application has reported" in ledger_fragment([], RecentLedger())
