"""Each commit is validated once in the history, none is passed over: two runs at once, runs that are killed, torn records."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.support.streams.batch_applications import wait_while_alive
from tests.support.tables.local_tables import Lander, lander, make_table
from tests.support.tables.validating import LABEL, ArrowEvaluator, spec, validate
from tests.support.worlds.said_findings import read_findings

from lakebound.control.desired import change_desired, read_desired
from lakebound.control.folder import ControlFolder
from lakebound.control.summaries import read_validation
from lakebound.inspection.validation.history import (
    Claim,
    done_of,
    folded,
    history_file,
    open_claim,
    read_history,
    write_claim,
)
from lakebound.inspection.validation.landed_files import line_reader
from lakebound.inspection.validation.planning import plan_validation
from lakebound.inspection.validation.verdict import ValidatedRange
from lakebound.tables.places import Places

REPOSITORY = Path(__file__).parents[3]
DEADLINE_SECONDS = 180.0


@pytest.fixture
def control(at: Places) -> ControlFolder:
    return ControlFolder(at.home, "orders")


@pytest.fixture
def apps(at: Places) -> list[Lander]:
    tables = spec().tables
    for table in tables:
        make_table(table, at)
    return [lander(table, at) for table in tables]


def land(apps: list[Lander], start: int, end: int) -> None:
    for app in apps:
        for offset in range(start, end, 5):
            app.land(offset, min(offset + 5, end))


def started(at: Places, moment: str, on_failure: str = "alert") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.support.tables.validating", str(at.home), moment, on_failure]
    return subprocess.Popen(command, cwd=REPOSITORY)


def wait_until_there(path: Path, process: subprocess.Popen[bytes]) -> None:
    wait_while_alive(process, path.exists, f"{path} is there")
    path.unlink()


def times_validated(control: ControlFolder, at: Places) -> dict[str, Counter[int]]:
    """Return how often each commit that landed rows is in the history, per table."""
    history = read_history(control)
    result = {}
    for table in spec().tables:
        reader = line_reader(table, at)
        assert reader is not None
        landings = [step.position for step in reader.line(lambda position: False).steps if step.lands]
        ranges = [one.positions for one in history if one.table == table.id]
        counts = {p: sum(start <= p < end for own in ranges for start, end in own) for p in landings}
        result[table.id] = Counter(counts)
    return result


def assert_each_once(control: ControlFolder, at: Places) -> None:
    for table, counts in times_validated(control, at).items():
        assert counts and set(counts.values()) == {1}, f"{table}: {counts}"


def test_ranges_follow_each_other_and_say_what_they_found(apps: list[Lander], at: Places, control: ControlFolder) -> None:
    land(apps, 1, 7)
    report = validate(at)
    assert not report.problems and [one.rows for one in report.ranges] == [6, 6] and report.passed == report.evaluated == 2
    assert validate(at).ranges == () and plan_validation(spec(), at, file_of()) == []
    land(apps, 7, 30)
    assert [one.rows for one in plan_validation(spec(), at, file_of())] == [23, 23]
    report = validate(at)
    assert [(one.rows, one.results[0].unexpected) for one in report.ranges] == [(23, 4), (23, 4)]
    assert_each_once(control, at)
    (found,) = read_findings(control)
    assert {finding.cause for finding in found.findings} == {f"{table.id} {LABEL}" for table in spec().tables}
    assert "orders/0:7" in str(found.findings[0].evidence["offsets"])
    # The objective speaks of rows, and the run of expectations.
    summary = read_validation(control)
    assert summary is not None and (summary.evaluated, summary.passed) == (46, 38)
    assert (report.evaluated, report.passed) == (2, 0)


def file_of():  # type: ignore[no-untyped-def]
    from tests.support.tables.validating import expectations

    return expectations()


def test_two_runs_at_once_validate_each_commit_once(apps: list[Lander], at: Places, control: ControlFolder) -> None:
    land(apps, 0, 50)
    first = started(at, "evaluating")
    wait_until_there(at.home / "at-evaluating", first)
    second = started(at, "never")
    assert second.wait(DEADLINE_SECONDS) == 3
    assert read_history(control) == []
    first.kill()
    first.wait(DEADLINE_SECONDS)
    racers = [started(at, "never") for _ in range(2)]
    codes = [racer.wait(DEADLINE_SECONDS) for racer in racers]
    assert set(codes) <= {0, 3} and 0 in codes
    assert_each_once(control, at)


def test_a_run_that_is_killed_leaves_its_range_to_the_next_one(apps: list[Lander], at: Places, control: ControlFolder) -> None:
    land(apps, 0, 20)
    victim = started(at, "evaluating")
    wait_until_there(at.home / "at-evaluating", victim)
    victim.kill()
    victim.wait(DEADLINE_SECONDS)
    land(apps, 20, 40)
    claim = open_claim(control, "delta:shop.orders", [])
    assert claim is not None
    report = validate(at)
    own = [one for one in report.ranges if one.table == "delta:shop.orders"]
    assert [one.rows for one in own] == [20, 20] and own[0].claim == claim.id
    assert own[0].positions == claim.positions
    assert_each_once(control, at)


def test_what_was_copied_before_the_kill_is_known_by_the_claim(apps: list[Lander], at: Places, control: ControlFolder) -> None:
    land(apps, 0, 20)
    victim = started(at, "copied", "quarantine")
    wait_until_there(at.home / "at-copied", victim)
    claim = open_claim(control, "delta:shop.orders", [])
    victim.kill()
    victim.wait(DEADLINE_SECONDS)
    land(apps, 20, 30)
    evaluator = ArrowEvaluator()
    validate(at, evaluator, on_failure="quarantine")
    assert claim is not None and next(iter(evaluator.copied)) == claim.id
    assert list(evaluator.copied.values()) == [3, 2], "of the first table only: the other holds the same records"
    assert_each_once(control, at)


def test_a_claim_that_was_rewound_is_dropped_and_nothing_is_skipped(
    apps: list[Lander], at: Places, control: ControlFolder
) -> None:
    land(apps, 0, 5)
    write_claim(control, Claim(id="gone", run_id="r", table="delta:shop.orders", positions=((90, 95),)))
    report = validate(at)
    assert not report.problems and {one.rows for one in report.ranges} == {5}
    assert_each_once(control, at)


def test_a_torn_line_was_not_written_and_spoils_none_after_it(apps: list[Lander], at: Places, control: ControlFolder) -> None:
    land(apps, 0, 10)
    validate(at)
    text = history_file(control).read_text()
    history_file(control).write_text(text[: len(text) - 20])
    assert len(read_history(control)) == 1
    land(apps, 10, 15)
    validate(at)
    assert_each_once(control, at)


def test_the_record_of_a_full_history_still_says_what_was_validated() -> None:
    ranges = [
        ValidatedRange(claim=str(n), run_id="r", table=f"delta:{n % 2}", positions=((n, n + 1),), offsets=n, at=float(n))
        for n in range(20)
    ]
    kept = folded(ranges)
    assert len(kept) == 12
    for table in ("delta:0", "delta:1"):
        assert done_of(table, kept).positions == done_of(table, ranges).positions


def test_stop_asks_the_stream_to_end_with_the_reason_and_leaves_a_hold_alone(
    apps: list[Lander], at: Places, control: ControlFolder
) -> None:
    land(apps, 1, 7)
    validate(at, None, on_failure="stop")
    assert read_desired(control).state == "running"
    land(apps, 7, 15)
    report = validate(at, None, on_failure="stop")
    desired = read_desired(control)
    assert desired.state == "stopped" and LABEL in desired.reason and report.stopped == desired.reason
    change_desired(control, "held", reason="a person looks", by="test")
    land(apps, 15, 30)
    assert validate(at, None, on_failure="stop").stopped == ""
    assert read_desired(control).reason == "a person looks"


def test_files_that_are_gone_are_said(apps: list[Lander], at: Places, control: ControlFolder) -> None:
    land(apps, 0, 10)
    delta = line_reader(spec().tables[0], at)
    assert delta is not None
    landings = [step for step in delta.line(lambda position: False).steps if step.lands]
    delta.files(landings)[0].path.delete()
    report = validate(at)
    own = next(one for one in report.ranges if one.table == "delta:shop.orders")
    assert own.rows == 5 and own.lost is not None and own.lost.rows == 5
    (found,) = read_findings(control)
    assert [one.cause for one in found.findings if "not validated" in one.cause] == ["delta:shop.orders not validated"]
