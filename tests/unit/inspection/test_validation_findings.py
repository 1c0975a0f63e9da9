"""Findings from the history of ranges; the usual volume."""

from __future__ import annotations

import pytest

from lakebound.control.findings import Severity
from lakebound.inspection.validation.expectations import ExpectationFile, UsualVolume
from lakebound.inspection.validation.open_findings import open_findings
from lakebound.inspection.validation.verdict import ExpectationResult, UnvalidatedRange, ValidatedRange
from lakebound.inspection.validation.volume import usual_rows

FILE = ExpectationFile.model_validate(
    {
        "pipeline": "orders",
        "resolve_after_seconds": 100,
        "expectations": [{"expect": "rows_to_satisfy", "name": "totals", "rule": "total > 0"}],
    }
)
TABLES = ["delta:orders", "iceberg:orders"]


def checked(at: float, *, bad: int = 0, label: str = "totals", **changes: object) -> ValidatedRange:
    result = ExpectationResult(
        label=label,
        severity=Severity.CRITICAL,
        passed=not bad,
        checked=100,
        unexpected=bad,
        samples=("orders/0:17",) if bad else (),
        is_of_rows=True,
    )
    body = {"claim": f"c{at}", "run_id": "r", "table": "delta:orders", "positions": ((int(at), int(at) + 1),), "at": at}
    return ValidatedRange(**{**body, "last": str(int(at)), "results": (result,), **changes})


def test_a_failure_is_found_with_its_rows_versions_and_offsets() -> None:
    (found,) = open_findings([checked(1), checked(2, bad=3), checked(3, bad=4, copied=4)], FILE, TABLES, now=4)
    assert found.cause == "delta:orders totals" and found.severity is Severity.CRITICAL and found.since == 2
    assert found.what == "delta:orders: totals: 4 of 100 rows are not as expected"
    assert found.evidence["rows_in_all"] == 7 and found.evidence["ranges_in_a_row"] == 2
    assert found.evidence["offsets"] == "orders/0:17" and found.evidence["versions"] == "3"
    assert found.runbook == "validation-failed" and "4 rows" in found.done


def test_it_is_over_when_it_has_held_for_some_time_and_not_before() -> None:
    history = [checked(1, bad=3), checked(50)]
    assert len(open_findings(history, FILE, TABLES, now=60)) == 1
    assert open_findings(history, FILE, TABLES, now=102) == []
    # Without new data nothing is known to hold.
    assert len(open_findings(history[:1], FILE, TABLES, now=500)) == 1


def test_late_rows_are_over_on_a_topic_without_new_records_and_wrong_rows_are_not() -> None:
    asked = [
        {"expect": "fresh", "name": "soon", "max_seconds": 60},
        {"expect": "rows_to_satisfy", "name": "totals", "rule": "total > 0"},
    ]
    file = ExpectationFile.model_validate(
        {"pipeline": "orders", "resolve_after_seconds": 100, "every_seconds": 90, "expectations": asked}
    )
    history = [checked(1, bad=3, label="soon"), checked(1, bad=3)]
    assert [one.cause for one in open_findings(history, file, TABLES, now=180)] == ["delta:orders soon", "delta:orders totals"]
    # After the time in which two more validations would have found more of them.
    assert [one.cause for one in open_findings(history, file, TABLES, now=182)] == ["delta:orders totals"]
    # Rows that are late again soon after are the same finding.
    again = [checked(1, bad=3, label="soon"), checked(150, bad=3, label="soon")]
    assert [one.since for one in open_findings(again, file, TABLES, now=200)] == [1]


def test_failures_close_together_are_one_and_one_long_after_is_another() -> None:
    (found,) = open_findings([checked(1, bad=3), checked(50), checked(60, bad=1)], FILE, TABLES, now=61)
    assert found.since == 1 and found.evidence["ranges_in_a_row"] == 2
    (found,) = open_findings([checked(1, bad=3), checked(50), checked(400, bad=1)], FILE, TABLES, now=401)
    assert found.since == 400 and found.evidence["ranges_in_a_row"] == 1


def test_an_expectation_that_is_no_longer_in_the_file_has_no_finding() -> None:
    assert open_findings([checked(1, bad=3, label="gone")], FILE, TABLES, now=2) == []


def test_an_expectation_that_is_no_longer_asked_of_a_table_has_no_finding_there() -> None:
    rule = FILE.expectations[0].model_copy(update={"tables": ("delta:orders",)})
    restricted = FILE.model_copy(update={"expectations": (rule,)})
    history = [checked(1, bad=3), checked(1, bad=3, table="iceberg:orders"), checked(1, bad=3, table="delta:gone")]
    assert [one.cause for one in open_findings(history, restricted, TABLES, now=2)] == ["delta:orders totals"]
    assert [one.cause for one in open_findings(history, FILE, TABLES, now=2)] == [f"{table} totals" for table in TABLES]
    lost = [checked(1, table=table, lost=UnvalidatedRange(rows=1)) for table in ("iceberg:orders", "delta:gone")]
    assert open_findings(lost, restricted, TABLES, now=2) == []


@pytest.mark.parametrize(("first", "severity"), [(True, Severity.INFO), (False, Severity.WARNING)])
def test_what_could_not_be_read_is_said_for_some_time(first: bool, severity: Severity) -> None:
    lost = UnvalidatedRange(positions=((0, 9),), offsets=120, rows=3, is_before_first=first)
    history = [checked(1), checked(2, lost=lost), checked(3)]
    (found,) = open_findings(history, FILE, TABLES, now=4)
    assert found.severity is severity and "120 offsets and 3 rows" in found.what and found.since == 2
    assert len(open_findings(history, FILE, TABLES, now=900)) == 1
    assert open_findings(history, FILE, TABLES, now=902) == []
    slow = FILE.model_copy(update={"resolve_after_seconds": 2000.0})
    assert len(open_findings(history, slow, TABLES, now=902)) == 1


def test_what_a_table_lost_twice_is_one_finding() -> None:
    before = checked(1, lost=UnvalidatedRange(offsets=500, is_before_first=True))
    history = [before, checked(2, lost=UnvalidatedRange(rows=3)), checked(3, lost=UnvalidatedRange(offsets=4, rows=1))]
    (found,) = open_findings(history, FILE, TABLES, now=4)
    assert found.severity is Severity.WARNING and "4 offsets and 4 rows landed since" in found.what


def past(count: int, rows: int = 600, spread: int = 0) -> list[ValidatedRange]:
    return [
        checked(number, rows=rows + (spread if number % 2 else -spread), from_ms=60_000 * number, to_ms=60_000 * (number + 1))
        for number in range(1, count + 1)
    ]


def test_the_usual_volume_is_that_of_the_past_times_the_length_of_the_range() -> None:
    expected = UsualVolume(expect="usual_volume", deviations=3, min_ranges=4)
    usual = usual_rows(expected, past(10, spread=30), from_ms=700_000, to_ms=700_000 + 120_000)
    assert usual is not None and usual.ranges == 10
    assert (usual.mean_per_minute, usual.deviation_per_minute) == (600, 30)
    assert (usual.min_rows, usual.max_rows) == (2 * (600 - 90), 2 * (600 + 90))


def test_a_short_past_tells_nothing_and_an_old_one_does_not_count() -> None:
    expected = UsualVolume(expect="usual_volume", min_ranges=4, past_seconds=300)
    assert usual_rows(expected, past(3), from_ms=300_000, to_ms=360_000) is None
    assert usual_rows(expected, past(10), from_ms=10_000_000, to_ms=10_060_000) is None
    assert usual_rows(expected, past(10), from_ms=660_000, to_ms=660_000) is None
    recent = usual_rows(expected, past(10), from_ms=660_000, to_ms=720_000)
    assert recent is not None and recent.ranges == 6
