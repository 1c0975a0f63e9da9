"""Why records went to quarantine, the tables' health and the results of validation: the newest, and no values of records."""

from __future__ import annotations

from pathlib import Path

from lakebound.control.findings import Severity
from lakebound.control.folder import ControlFolder
from lakebound.control.progress import RecentRecords
from lakebound.control.rollup_files import append_buckets
from lakebound.control.rollups import HOUR, Bucket, Figures
from lakebound.inspection.validation.history import append, folder, history_file, read_history, read_newest
from lakebound.inspection.validation.verdict import ExpectationResult, ValidatedRange
from lakebound.operations.maintenance.health_history import HealthReading, record_health
from lakebound_airflow.page.quality import ReasonRow, last_results, read_quality, reason_rows
from lakebound_airflow.page.quality_fragment import quality_fragment

MARKUP = "<script>alert(1)</script>"
SECRET = "SECRET-VALUE"
NOW = 1_700_000_000.0
DAY = 86_400


def validated(at: float, **passed: bool) -> ValidatedRange:
    results = tuple(
        ExpectationResult(
            label=label,
            severity=Severity.CRITICAL,
            passed=held,
            checked=90,
            unexpected=0 if held else 3,
            samples=() if held else ("orders/0:17",),
            observed=SECRET,
            problem=SECRET if label == "broken" else "",
        )
        for label, held in passed.items()
    )
    return ValidatedRange(
        claim="c", run_id="r", table=f"delta:lake.{MARKUP}", positions=((0, 9),), last="8", at=at, results=results
    )


def test_reasons_are_the_commonest_first_and_those_not_counted_are_said() -> None:
    recent = RecentRecords(over_seconds=300, newest_at=NOW, records=50, quarantined=4, reasons={"not_json": 4})
    day = Figures(read=9000, quarantined=30, reasons={"does_not_fit: amount": 20, "not_json": 7})
    assert reason_rows(recent, day) == [
        ReasonRow("does_not_fit: amount", 0, 20),
        ReasonRow("not_json", 4, 7),
        ReasonRow(None, 0, 3),
    ]
    assert reason_rows(None, Figures(read=5)) == []


def test_of_each_expectation_the_last_result_counts_and_failures_are_first() -> None:
    found = last_results([validated(NOW - 60, a=False, b=True), validated(NOW, a=True, c=False)])
    assert [(last.result.label, last.result.passed, last.one.at) for last in found] == [
        ("c", False, NOW),
        ("a", True, NOW),
        ("b", True, NOW - 60),
    ]


def test_only_the_end_of_the_record_is_read_and_a_cut_line_is_none(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    assert read_newest(control) == []
    folder(control).mkdir(parents=True)
    for number in range(20):
        append(control, validated(NOW + number, a=True))
    line = history_file(control).stat().st_size // 20
    assert [one.at for one in read_newest(control, 3 * line + line // 2)] == [NOW + 17, NOW + 18, NOW + 19]
    assert read_newest(control) == read_history(control)


def test_the_fragment_says_what_the_state_knows_and_holds_neither_markup_nor_values(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    nothing = quality_fragment(read_quality(control, NOW))
    assert nothing.count('<p class="quiet">') == 3 and "<table" not in nothing
    old, new = (
        Bucket(HOUR.start_of(NOW - 2 * DAY), Figures(quarantined=900)),
        Bucket(HOUR.start_of(NOW - 7200), Figures(read=5000, quarantined=12, reasons={MARKUP: 12})),
    )
    append_buckets(control, HOUR, [old, new], NOW)
    readings = [
        HealthReading(
            at_ms=int((NOW - age) * 1000), table="delta:lake.orders", score=71.4, files=files, small_files=9, size_bytes=5 << 20
        )
        for age, files in ((2 * DAY, 40), (60, 55))
    ]
    record_health(control, readings)
    folder(control).mkdir(parents=True)
    append(control, validated(NOW, **{MARKUP: False, "broken": False}))
    text = quality_fragment(read_quality(control, NOW))
    for words in (
        "12 of 5,000",
        "&lt;script&gt;",
        ">71<",
        ">55<",
        ">15<",
        "orders/0:17",
        "badge critical",
        "2 of 2 not as expected",
        "not evaluated",
    ):
        assert words in text, words
    assert "<script" not in text and SECRET not in text and "900" not in text
    history_file(control).unlink()
    history_file(control).mkdir()
    assert "not all of the state can be read" in quality_fragment(read_quality(control, NOW))
