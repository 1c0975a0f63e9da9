"""Whatever happened to a Delta table: its log and its files lead to everything that is promised, pinned or needed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.worlds.table_histories import START_MS, DeltaHistory, live_one

from lakebound.operations.maintenance.delta.kept_log import clean_before, vacuum_retention_seconds
from lakebound.operations.maintenance.keep import undo_until_ms
from lakebound.operations.recovery.rewind.choice import last_rewind
from lakebound.spec.maintenance import HistorySpec, MaintenanceSpec, OrphansSpec
from lakebound.tables.delta.durations import parse_ms

MINUTE, HOUR, DAY = 60, 3600, 86400
POLICY = MaintenanceSpec(
    history=HistorySpec(keep_delta_seconds=20 * MINUTE, undo_seconds=3 * HOUR, removed_files_seconds=HOUR),
)


def clean(history: DeltaHistory, properties: dict[str, str]) -> int:
    """Do as the engine does, and return how many commits went."""
    before = clean_before(history.past(), POLICY.history, properties, history.now_ms)
    if before is None:
        return 0
    assert before in history.checkpoints and before > history.first
    gone, history.first = before - history.first, before
    return gone


def promised(history: DeltaHistory, keep_seconds: float) -> set[int]:
    """Return the versions that somebody may want to read."""
    since_ms = history.now_ms - round(keep_seconds * 1000)
    young = {number for number, one in history.commits.items() if one.at_ms >= since_ms}
    before = {max((number for number, one in history.commits.items() if one.at_ms <= since_ms), default=1)}
    left = {one for one, at_ms, _ in history.left if history.now_ms <= undo_until_ms(POLICY.history, at_ms)}
    return young | before | left | set(history.readers.values()) | {history.current}


def check(history: DeltaHistory, keep_seconds: float, gone_files: set[str]) -> None:
    for number in promised(history, keep_seconds):
        assert number >= history.first, "its log is gone"
        # Going back through the log for the entry that counts there ends at it, and not at the log's end.
        counting = history.counting(number)
        assert counting is None or counting >= history.first
        assert not history.commits[number].files & gone_files, "its files are gone"
    found, expected = last_rewind(history.versions()), last_rewind(history.all_versions())
    if found is not None and found.before is not None:
        assert found == expected, "undoing would bring back something else"


@pytest.mark.parametrize("retention", [None, "interval 2 hours"])
def test_what_is_promised_stays_readable(retention: str | None) -> None:
    """Thousands of commits in random histories, with a run every now and then."""
    properties = {"delta.logRetentionDuration": retention} if retention else {}
    keep_seconds = max(POLICY.history.keep_delta_seconds, (parse_ms(retention) or 0) / 1000 if retention else 0)
    gone: list[int] = []

    @settings(max_examples=25)
    @given(seed=st.integers(0, 2**32))
    def live(seed: int) -> None:
        chance, history = random.Random(seed), DeltaHistory()
        gone_files: set[str] = set()
        history.commit("genesis")
        for _ in range(chance.randint(20, 250)):
            # Nobody goes back to what is promised no longer: its files may be gone.
            live_one(history, chance, sorted(promised(history, POLICY.history.keep_delta_seconds)))
            if chance.random() < 0.2:
                past = history.past()
                seconds = vacuum_retention_seconds(past, POLICY, properties, history.now_ms, is_full=False)
                gone_files |= history.vacuumed(seconds)
                gone.append(clean(history, properties))
                check(history, keep_seconds, gone_files)
                assert clean(history, properties) == 0, "what a run has left is not due"

    live()
    assert sum(gone) > len(gone) > 0, "the policy takes something away"


def landed(count: int, every_seconds: float = 60.0) -> DeltaHistory:
    history = DeltaHistory()
    history.commit("genesis")
    for _ in range(count):
        history.now_ms += round(every_seconds * 1000)
        history.commit("land")
    return history


def base_of(history: DeltaHistory, after_seconds: float = 0, **properties: str) -> int | None:
    return clean_before(history.past(), POLICY.history, properties, history.now_ms + round(after_seconds * 1000))


def test_the_log_is_cut_at_the_checkpoint_before_what_is_kept() -> None:
    history = landed(103)
    assert base_of(history) == 80, "104 commits, a minute apart: the last twenty, and the one before them"
    assert base_of(history, after_seconds=10 * DAY) == 100
    history.checkpoint_every = 1000
    assert base_of(history) is None


def test_the_newest_entry_that_counts_stays_and_the_one_of_the_oldest_version_that_is_kept() -> None:
    history = landed(20)
    for _ in range(30):
        history.commit("carry")
    assert base_of(history, after_seconds=10 * DAY) == 20
    history.now_ms += DAY * 1000
    history.commit("land")
    assert history.counting(51) == 21 and base_of(history) == 20
    history.first = 22
    assert base_of(history) is None, "what counts at the kept ones before is gone already"
    assert base_of(history, after_seconds=10 * DAY) == 50


def test_explicit_settings_of_the_table_lengthen_what_is_kept() -> None:
    history = landed(200)
    assert base_of(history, **{"delta.logRetentionDuration": "interval 100 minutes"}) == 100
    assert base_of(history, **{"delta.logRetentionDuration": "interval 1 minute"}) == 180
    assert base_of(history, **{"delta.logRetentionDuration": "for ever"}) is None, "what cannot be read is the default, 30 days"
    assert base_of(history, **{"delta.enableExpiredLogCleanup": "false"}) is None


def test_a_reader_and_a_problem_stop_the_cleaning() -> None:
    history = landed(200)
    history.readers["dashboard"] = 63
    assert base_of(history) == 60
    assert history.past().pins == {"dashboard": 63}
    torn = history.past().model_copy(update={"problems": ("its checkpoint is torn",)})
    assert clean_before(torn, POLICY.history, {}, history.now_ms) is None


def test_the_log_stays_from_where_the_batch_began_that_a_reader_asks_for_again_and_removed_files_do_not() -> None:
    history = landed(200)
    history.readers["dashboard"] = 200
    past = history.past()
    asks = past.model_copy(update={"restarts": {"dashboard": 63}})
    assert clean_before(past, POLICY.history, {}, history.now_ms) == 180
    assert clean_before(asks, POLICY.history, {}, history.now_ms) == 60
    retention = {vacuum_retention_seconds(one, POLICY, {}, history.now_ms, is_full=False) for one in (past, asks)}
    assert len(retention) == 1, "Spark reads the log alone"


@pytest.mark.parametrize(
    ("policy", "properties", "is_full", "hours"),
    [
        ({"removed_files_seconds": 5 * HOUR}, {}, False, 5),
        ({"keep_delta_seconds": 7 * HOUR}, {}, False, 7),
        ({"undo_seconds": 9 * HOUR}, {}, False, 9),
        ({}, {"delta.deletedFileRetentionDuration": "interval 4 days"}, False, 96),
        ({}, {"delta.deletedFileRetentionDuration": "interval 1 hour"}, False, 3),
        ({}, {"delta.deletedFileRetentionDuration": "interval 1 day 6 hours"}, False, 30),
        ({}, {"delta.deletedFileRetentionDuration": "?"}, False, 168),
        ({}, {}, True, 72),
    ],
)
def test_vacuum_waits_for_the_longest_promise(
    policy: dict[str, float], properties: dict[str, str], is_full: bool, hours: float
) -> None:
    spec = POLICY.model_copy(update={"history": POLICY.history.model_copy(update=policy)})
    history = landed(5)
    found = vacuum_retention_seconds(history.past(), spec, properties, history.now_ms, is_full=is_full)
    assert found == hours * HOUR


def test_vacuum_waits_for_the_slowest_reader() -> None:
    history = landed(500)
    for pin, minutes in ((2, 499), (301, 200)):
        history.readers["dashboard"] = pin
        assert vacuum_retention_seconds(history.past(), POLICY, {}, history.now_ms, is_full=False) == minutes * MINUTE
    history.readers["dashboard"] = 502
    assert vacuum_retention_seconds(history.past(), POLICY, {}, history.now_ms, is_full=False) == 3 * HOUR


def test_vacuum_in_full_waits_as_long_as_the_look_for_orphans() -> None:
    slow = POLICY.model_copy(update={"orphans": OrphansSpec(min_age_seconds=5 * DAY)})
    assert vacuum_retention_seconds(landed(2).past(), slow, {}, START_MS, is_full=True) == 5 * DAY


def test_both_formats_keep_what_a_rewind_left_until_the_time_that_its_plan_names() -> None:
    """The one function is asked when a rewind is planned, and when something may be removed."""
    history = landed(50)
    history.rewind(40)
    left_at_ms = history.now_ms
    for _ in range(30):
        history.now_ms += 20 * MINUTE * 1000
        history.commit("land")
    until_ms = undo_until_ms(POLICY.history, left_at_ms)
    assert clean_before(history.past(), POLICY.history, {}, until_ms) == 50
    assert (clean_before(history.past(), POLICY.history, {}, until_ms + 1) or 0) > 52
    seconds = vacuum_retention_seconds(history.past(), POLICY, {}, until_ms, is_full=False)
    assert until_ms - seconds * 1000 <= left_at_ms, "what the rewind removed"
