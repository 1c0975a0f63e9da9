from __future__ import annotations

from dataclasses import replace

import pytest

from lakebound.control.crash_loop import CrashLoop, count_last_end
from lakebound.control.desired import Desired
from lakebound.control.last_end import LastEnd
from lakebound.control.lease import Lease
from lakebound.control.progress import EndVerdict, Outcome, Progress, SearchProgress, TableProgress
from lakebound.control.submission import Custody, Owner, Submission
from lakebound.control.supervision import (
    End,
    KafkaView,
    Start,
    belongs_to,
    decide_end,
    decide_start,
    is_incident,
    is_outdated,
    look_at_kafka,
    stall,
)
from lakebound.spec.limits import ThresholdsSpec

ME = Owner(dag_id="ingest__orders", run_id="run-2", task_id="stream", try_number=1)
NOW = 1_000_000.0
THRESHOLDS = ThresholdsSpec(stall_seconds=60)


def submission(owner: Owner | None = ME, custody: Custody = Custody.WATCHED, generation: int = 0) -> Submission:
    return Submission(app_id="app-1", owner=owner, custody=custody, generation=generation, submitted_at=NOW - 1000)


def other_run(try_number: int = 1) -> Owner:
    return ME.model_copy(update={"run_id": "run-1", "try_number": try_number})


def start(found: Submission | None, owner_state: str | None = None, desired: Desired | None = None) -> Start:
    return decide_start(desired or Desired(), found, found is not None, ME, owner_state).start


def test_without_an_application_one_is_submitted_when_the_pipeline_is_wanted_running() -> None:
    assert start(None) is Start.SUBMIT
    assert start(None, desired=Desired(state="stopped")) is Start.IDLE
    assert start(None, desired=Desired(state="held")) is Start.IDLE


def test_the_same_try_finds_its_application_again() -> None:
    assert start(submission()) is Start.ATTACH
    assert start(submission(custody=Custody.TAKEN)) is Start.ATTACH


def test_a_cleared_task_stops_the_application_of_its_former_try() -> None:
    cleared = ME.model_copy(update={"try_number": 2})
    assert decide_start(Desired(), submission(), True, cleared, None).start is Start.REPLACE


@pytest.mark.parametrize("state", ["success", "failed", "skipped", "removed"])
def test_a_marked_task_leaves_an_application_that_the_next_run_stops(state: str) -> None:
    assert start(submission(other_run()), state) is Start.REPLACE


@pytest.mark.parametrize("custody", [Custody.TAKEN, Custody.HANDED_OVER])
def test_an_application_whose_task_ended_by_itself_is_attached_to(custody: Custody) -> None:
    found = submission(other_run(), custody)
    assert start(found, "failed") is Start.ATTACH
    assert belongs_to(found, ME, "failed")


def test_an_application_of_a_run_that_airflow_forgot_is_attached_to() -> None:
    assert start(submission(other_run()), None) is Start.ATTACH
    assert belongs_to(submission(other_run()), ME, None)


@pytest.mark.parametrize("state", ["deferred", "running", "scheduled", "queued", "cleared"])
def test_an_application_of_a_run_that_is_not_over_is_only_watched(state: str) -> None:
    assert start(submission(other_run()), state) is Start.ATTACH
    assert not belongs_to(submission(other_run()), ME, state)


def test_an_application_that_a_person_started_is_only_watched() -> None:
    assert start(submission(None)) is Start.ATTACH
    assert not belongs_to(submission(None), ME, None)


def test_a_stalled_application_is_replaced_whoever_has_it() -> None:
    assert start(submission(other_run(), Custody.CONDEMNED), "failed") is Start.REPLACE
    assert start(submission(ME, Custody.CONDEMNED)) is Start.REPLACE


def progress(
    age_seconds: float = 1.0, app_id: str = "app-1", mark: int = 10, rows: int = 0, state: str = "running"
) -> Progress:
    return Progress.model_validate(
        {
            "pipeline": "orders",
            "app_id": app_id,
            "state": state,
            "started_at": NOW - 900,
            "updated_at": NOW - age_seconds,
            "high_water_marks": {"orders": {0: mark}},
            "tables": {"delta:orders": TableProgress(version="1", committed_at=NOW, rows=rows)},
        }
    )


def kind(found: Progress | None, kafka: KafkaView | None = None, freshness: str = "500ms", age: float = 1000) -> str | None:
    app = submission().model_copy(update={"submitted_at": NOW - age})
    verdict = stall(THRESHOLDS, freshness, app, found, kafka or KafkaView(), NOW)
    return None if verdict is None else verdict.kind


def test_silence_beyond_the_threshold_is_a_stall() -> None:
    assert kind(progress(age_seconds=59)) is None
    assert kind(progress(age_seconds=61)) == "silent"


def test_an_application_may_take_its_time_to_start_but_not_for_ever() -> None:
    assert kind(None, age=170) is None
    assert kind(progress(age_seconds=500, app_id="former"), age=170) is None
    assert kind(None, age=190) == "never_started"
    assert kind(progress(state="starting"), age=890) is None
    assert kind(progress(state="starting"), age=910) == "never_started"
    assert kind(progress(state="waiting"), age=910) is None, "an outage is waited out"


def test_records_that_wait_while_nothing_is_committed_are_a_stall() -> None:
    behind = KafkaView(behind_since=NOW - 61, marks={"orders": {0: 10}}, waiting_records=5)
    assert kind(progress(), behind) is None, "one trigger interval is no stall"
    later = KafkaView(behind_since=NOW - 62, marks={"orders": {0: 10}}, waiting_records=5)
    assert kind(progress(), later) == "not_committing"
    assert kind(progress(mark=11), later) is None, "a commit since the last look"
    assert kind(progress(state="waiting"), later) is None, "an outage is waited out"
    assert kind(progress(), later, freshness="5m") is None


def test_a_search_for_bad_records_is_no_stall_as_long_as_it_goes_on() -> None:
    behind = KafkaView(behind_since=NOW - 600, marks={"orders": {0: 10}}, waiting_records=5)
    for seconds, expected in ((2, None), (59, None), (70, "not_committing")):
        search = SearchProgress(since=NOW - 600, changed_at=NOW - seconds, records=4096, tried=900, found=40)
        assert kind(progress().model_copy(update={"search": search}), behind) == expected


def test_the_outside_look_counts_from_the_first_time_that_records_waited() -> None:
    latest = {"orders": {0: 15, 1: 7}}
    first = look_at_kafka(KafkaView(), progress(), latest, NOW)
    assert (first.behind_since, first.waiting_records) == (NOW, 5), "a partition that was never seen does not count"
    assert look_at_kafka(first, progress(), {"orders": {0: 99}}, NOW + 10).behind_since == NOW
    assert look_at_kafka(first, progress(mark=12), latest, NOW + 10).behind_since == NOW + 10
    assert look_at_kafka(first, progress(mark=15), latest, NOW + 10).behind_since is None
    assert look_at_kafka(first, None, latest, NOW + 10) == KafkaView()


def outcome(verdict: EndVerdict, commits: int = 0) -> Outcome:
    return Outcome(app_id="app-1", verdict=verdict, reason="why", commits=commits, started_at=NOW - 10, ended_at=NOW)


@pytest.mark.parametrize(
    ("verdict", "end"),
    [
        ("stopped", End.DONE),
        ("completed", End.DONE),
        ("failed", End.FAILED),
        ("refused", End.REFUSED),
        ("superseded", End.SUPERSEDED),
    ],
)
def test_an_outcome_decides_the_end(verdict: EndVerdict, end: End) -> None:
    assert decide_end(submission(), outcome(verdict), None, Desired()).end is end


def test_an_end_for_a_newer_generation_is_a_restart_unless_nothing_is_wanted() -> None:
    assert decide_end(submission(), outcome("stopped"), None, Desired(generation=1)).end is End.RESTART
    assert decide_end(submission(), outcome("stopped"), None, Desired(generation=1, state="stopped")).end is End.DONE


def test_a_death_without_a_word_is_a_failure_and_progress_tells_whether_it_had_landed() -> None:
    assert not decide_end(submission(), None, progress(rows=0), Desired()).landed
    assert decide_end(submission(), None, progress(rows=3), Desired()).landed
    assert not decide_end(submission(), None, progress(rows=3, app_id="former"), Desired()).landed
    assert decide_end(submission(), None, None, Desired()).end is End.FAILED
    assert decide_end(submission(), outcome("failed", commits=1), None, Desired()).landed


def test_who_was_ended_by_a_query_that_could_land_nothing_has_not_landed_although_another_query_had() -> None:
    stuck = outcome("failed", commits=9).model_copy(update={"stuck": "real time"})
    assert not decide_end(submission(), stuck, progress(rows=3), Desired()).landed
    held = Lease(epoch=4, app_id="app-1", host="h", pid=1, pid_started_at=0, acquired_at=0, heartbeat_at=20, ttl_seconds=30)
    short = stuck.model_copy(update={"started_at": 0.0, "ended_at": 20.0})
    end = LastEnd(held, short, progress(rows=3), landed_epoch=4)
    assert (end.landed, end.is_barren) == (False, True)
    loop = CrashLoop()
    for number in range(3):
        loop = count_last_end(loop, replace(end, lease=held.model_copy(update={"app_id": f"app-{number}"})), 0.0)
    assert loop.is_over_limit(3)
    assert not replace(end, outcome=short.model_copy(update={"stuck": None})).is_barren


def test_an_incident_had_landed_for_ten_minutes() -> None:
    assert is_incident(600, landed=True)
    assert not is_incident(599, landed=True)
    assert not is_incident(6000, landed=False)


def test_an_application_is_outdated_only_when_both_hashes_are_known_and_differ() -> None:
    assert is_outdated("a", "b")
    assert not is_outdated("a", "a")
    assert not is_outdated("", "b")
