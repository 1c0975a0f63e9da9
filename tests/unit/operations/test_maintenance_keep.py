"""Whatever happened to an Iceberg table: nothing that is promised, pinned or needed expires, and the ledger stays in reach."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.worlds.table_histories import START_MS, IcebergHistory, live_one

from lakebound.operations.maintenance.iceberg.kept_snapshots import expirable, kept_snapshots
from lakebound.operations.maintenance.keep import undo_until_ms
from lakebound.operations.recovery.rewind.choice import last_rewind
from lakebound.spec.maintenance import HistorySpec
from lakebound.tables.iceberg.expirable import expirable as engine_allows

MINUTE, HOUR = 60, 3600
POLICY = HistorySpec(
    keep_all_seconds=10 * MINUTE,
    keep_all_snapshots=100,
    keep_minutely_seconds=HOUR,
    keep_hourly_seconds=8 * HOUR,
    undo_seconds=3 * HOUR,
)


def check_iceberg(history: IcebergHistory) -> None:
    known, now_ms = history.known(), history.now_ms
    assert history.current in known
    assert history.tags <= known
    if "dashboard" in history.readers:
        pin = history.readers["dashboard"]
        assert {pin, *(number for number in history.ancestry(history.current) if number > pin)} <= known
    newest = history.log[-POLICY.keep_all_snapshots :]
    young = {int(one.version) for one in newest if one.committed_at_ms >= now_ms - POLICY.keep_all_seconds * 1000}
    assert young & history.commits.keys() <= known
    check_counting(history, known)
    check_thinning(history)
    check_undo(history, known)


def check_counting(history: IcebergHistory, known: set[int]) -> None:
    """A walk from any kept version ends at the entry that counts there, as if nothing had ever expired."""
    parents = {one["snapshot-id"]: one.get("parent-snapshot-id") for one in history.body["snapshots"]}
    for number in known:
        at: int | None = number
        while at in known and not history.commits[at].counts:
            at = parents[at]
        assert at == history.counting(number)


def check_thinning(history: IcebergHistory) -> None:
    """In each second, minute and hour in which the table was something new there is something to go back to."""
    kept = {version.committed_at_ms // span for version in history.versions() for span in (1_000, 60_000, 3_600_000)}
    for version in history.log:
        age = (history.now_ms - version.committed_at_ms) / 1000
        if age <= POLICY.keep_all_seconds:
            assert version.committed_at_ms // 1_000 in kept
        if age <= POLICY.keep_minutely_seconds:
            assert version.committed_at_ms // 60_000 in kept
        if age <= POLICY.keep_hourly_seconds:
            assert version.committed_at_ms // 3_600_000 in kept


def check_undo(history: IcebergHistory, known: set[int]) -> None:
    for left, left_at_ms, _ in history.left:
        if history.now_ms <= undo_until_ms(POLICY, left_at_ms):
            assert left in known, "a rewind promised that it can be undone"
    found, expected = last_rewind(history.versions()), last_rewind(history.all_versions())
    if found is not None and found.before is not None:
        assert found == expected, "undoing would bring back something else"


def test_nothing_that_is_needed_ever_expires() -> None:
    """Thousands of commits in random histories, with a run every now and then."""
    expired: list[int] = []

    @settings(max_examples=25)
    @given(seed=st.integers(0, 2**32))
    def live(seed: int) -> None:
        chance, history = random.Random(seed), IcebergHistory()
        history.commit("genesis")
        for _ in range(chance.randint(20, 250)):
            live_one(history, chance, sorted(history.known()))
            if chance.random() < 0.15:
                ids = set(expirable(history.past(), POLICY, {}, history.now_ms))
                assert engine_allows(ids, history.body, "t") == ids
                history.expire(ids)
                expired.append(len(ids))
                check_iceberg(history)
                again = expirable(history.past(), POLICY, {}, history.now_ms)
                assert not again or history.rollbacks, "what a run has left is not due"

    live()
    assert sum(expired) > 2 * len(expired) > 0, "the policy takes something away"


# One thing at a time


def landed(count: int, every_seconds: float = 1.0) -> IcebergHistory:
    history = IcebergHistory()
    history.commit("genesis")
    for _ in range(count):
        history.now_ms += round(every_seconds * 1000)
        history.commit("land")
    return history


def kept(history: IcebergHistory, after_seconds: float = 0, **properties: str) -> set[int]:
    now_ms = history.now_ms + round(after_seconds * 1000)
    return set(kept_snapshots(history.past(), POLICY, properties, now_ms))


def test_of_a_day_stay_the_last_of_each_minute_and_of_each_hour() -> None:
    """Of 2,880 snapshots stay as many as the policy has minutes and hours, and each promised time can be gone back to."""
    history = landed(2880, every_seconds=30)
    left = kept(history)
    assert 21 + 49 + 7 <= len(left) <= 21 + 50 + 8 + 2
    for age in (0, 300, 599, 1800, 3599, 7200, 8 * HOUR):
        at_ms = history.now_ms - age * 1000
        newest = max(number for number in left if history.commits[number].at_ms <= at_ms)
        span_ms = 1 if age <= 600 else 60_000 if age <= HOUR else 3_600_000
        assert at_ms - history.commits[newest].at_ms < span_ms + 30_000


def test_how_often_a_table_is_committed_to_does_not_make_its_list_of_snapshots_longer_and_longer() -> None:
    """Each commit writes it anew. Of fifteen commits a second the newest stay, and of those before the last of each second."""
    history, policy = landed(15 * 180, every_seconds=1 / 15), HistorySpec(keep_all_seconds=120, keep_all_snapshots=900)
    left = kept_snapshots(history.past(), policy, {}, history.now_ms)
    assert 15 * 60 + 55 <= len(left) <= 15 * 60 + 65
    for age in range(121):
        at_ms = history.now_ms - age * 1000
        newest = max(number for number in left if history.commits[number].at_ms <= at_ms)
        assert at_ms - history.commits[newest].at_ms < (100 if age < 60 else 1_100)


def test_the_current_snapshot_and_its_entry_stay_however_old() -> None:
    history = landed(20)
    for _ in range(3):
        history.commit("carry")
    assert kept(history, after_seconds=30 * 24 * HOUR) == {21, 22, 23, 24}


def test_a_carried_entry_is_kept_with_the_way_to_the_one_that_counts() -> None:
    history = landed(5)
    history.now_ms += 3 * MINUTE * 1000
    history.commit("carry")
    history.commit(None)
    history.tag()
    history.now_ms += 3 * MINUTE * 1000
    history.commit("land")
    assert {6, 7, 8} <= kept(history, after_seconds=30 * 24 * HOUR)


def test_without_an_entry_that_counts_nothing_expires() -> None:
    history = IcebergHistory()
    for _ in range(10):
        history.commit("carry")
    assert expirable(history.past(), POLICY, {}, history.now_ms + 10**12) == ()
    history.commit("land")
    assert len(expirable(history.past(), POLICY, {}, history.now_ms + 10**12)) == 10
    assert expirable(IcebergHistory().past(), POLICY, {}, history.now_ms) == ()


def test_a_reader_keeps_what_it_has_still_to_read_and_one_that_is_lost_keeps_all() -> None:
    history = landed(50)
    history.readers["dashboard"] = 30
    assert kept(history, after_seconds=30 * 24 * HOUR) == set(range(30, 52))
    history.readers["dashboard"] = 999
    assert len(kept(history, after_seconds=30 * 24 * HOUR)) == 51


def test_a_problem_or_the_table_itself_forbids_expiry() -> None:
    history, later_ms = landed(50), START_MS + 10**12
    past = history.past()
    assert len(expirable(past, POLICY, {}, later_ms)) == 50
    assert expirable(past.model_copy(update={"problems": ("its checkpoint is torn",)}), POLICY, {}, later_ms) == ()
    assert expirable(past, POLICY, {"gc.enabled": "false"}, later_ms) == ()
    assert len(expirable(past, POLICY, {"history.expire.min-snapshots-to-keep": "20"}, later_ms)) == 31


def test_a_rewind_can_be_undone_until_the_time_that_its_plan_names() -> None:
    history = landed(50)
    history.rewind(20)
    left_at_ms = history.now_ms
    for _ in range(50):
        history.now_ms += 20_000
        history.commit("land")
    until_ms = undo_until_ms(POLICY, left_at_ms)
    assert until_ms == left_at_ms + 3 * HOUR * 1000
    for at_ms, is_kept in ((until_ms, True), (until_ms + HOUR * 1000, False)):
        left = kept_snapshots(history.past(), POLICY, {}, at_ms)
        assert ({51, 52} <= left) is is_kept
        assert is_kept or not {51, 52} & left, "a reset alone would undo to something else"


def test_what_others_expired_between_two_snapshots_is_no_rewind() -> None:
    history = landed(400, every_seconds=10)
    history.expire(set(range(2, 380, 2)))
    assert history.past().was_current == {}
    history.rewind(390)
    assert history.past().was_current == {401: history.now_ms}
    history.body["snapshot-log"] = history.body["snapshot-log"][-1:]
    assert history.past().was_current == {401: history.now_ms}, "nor is the log of what was current needed"


def test_a_rollback_without_a_commit_is_seen_in_the_log() -> None:
    history = landed(20)
    history.now_ms += 5000
    history.roll_back(10)
    assert history.past().was_current == {21: history.now_ms}
    assert 21 in kept(history, after_seconds=2 * HOUR) and 21 not in kept(history, after_seconds=9 * HOUR)
