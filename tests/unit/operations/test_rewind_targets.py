"""What the page promises of a table's past is what maintenance keeps, whatever happens to the table afterwards."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.support.worlds.table_histories import START_MS, DeltaHistory, IcebergHistory, live_one

from lakebound.control.folder import ControlFolder
from lakebound.control.table_history import Grain, RewindTarget, TableHistory, read_table_history, write_table_history
from lakebound.operations.maintenance.delta.kept_log import clean_before
from lakebound.operations.maintenance.iceberg.kept_snapshots import expirable
from lakebound.operations.maintenance.rewind_targets import chosen_targets, rewind_targets, table_history
from lakebound.spec.maintenance import MOST_HISTORY_SECONDS, HistorySpec

MINUTE, HOUR = 60, 3600
POLICY = HistorySpec(
    keep_delta_seconds=6 * HOUR,
    keep_all_seconds=10 * MINUTE,
    keep_all_snapshots=100,
    keep_minutely_seconds=HOUR,
    keep_hourly_seconds=8 * HOUR,
    undo_seconds=3 * HOUR,
)
DELTA_PROPERTIES = {"delta.logRetentionDuration": "interval 9 hours"}


class Promises:
    """What was told of a history so far: version to the time, in milliseconds, until which it is kept."""

    def __init__(self) -> None:
        self.until_ms: dict[int, float] = {}
        self.checked = 0

    def note(self, history: IcebergHistory | DeltaHistory, properties: dict[str, str]) -> None:
        for one in rewind_targets(history.past(), POLICY, properties, history.now_ms):
            if one.until is not None:
                self.until_ms[int(one.version)] = max(self.until_ms.get(int(one.version), 0), one.until * 1000)

    def check(self, now_ms: int, is_there) -> None:  # type: ignore[no-untyped-def]
        for version, until_ms in self.until_ms.items():
            if until_ms > now_ms:
                self.checked += 1
                assert is_there(version), f"{version} was promised for another {(until_ms - now_ms) / 1000:.0f} s"


def test_no_snapshot_expires_before_the_time_that_was_told() -> None:
    checked: list[int] = []

    @settings(max_examples=5)
    @given(seed=st.integers(0, 2**32))
    def live(seed: int) -> None:
        chance, history, promises = random.Random(seed), IcebergHistory(), Promises()
        history.commit("genesis")
        for _ in range(chance.randint(20, 200)):
            live_one(history, chance, sorted(history.known()))
            if chance.random() < 0.2:
                promises.note(history, {})
            if chance.random() < 0.15:
                history.expire(set(expirable(history.past(), POLICY, {}, history.now_ms)))
                promises.check(history.now_ms, history.known().__contains__)
        checked.append(promises.checked)

    live()
    assert sum(checked) > 30


@pytest.mark.parametrize("properties", [{}, DELTA_PROPERTIES], ids=["policy", "property"])
def test_no_version_of_a_log_is_cut_off_before_the_time_that_was_told(properties: dict[str, str]) -> None:
    checked: list[int] = []

    @settings(max_examples=5)
    @given(seed=st.integers(0, 2**32))
    def live(seed: int) -> None:
        chance, history, promises = random.Random(seed), DeltaHistory(), Promises()
        history.commit("genesis")
        for _ in range(chance.randint(20, 200)):
            live_one(history, chance, history.known())
            if chance.random() < 0.2:
                promises.note(history, properties)
            if chance.random() < 0.15:
                before = clean_before(history.past(), POLICY, properties, history.now_ms)
                history.first = before or history.first
                promises.check(history.now_ms, lambda version: version >= history.first)
        checked.append(promises.checked)

    live()
    assert sum(checked) > 30


def landed(history: IcebergHistory | DeltaHistory, count: int, every_seconds: int) -> None:
    for _ in range(count):
        history.now_ms += every_seconds * 1000
        history.commit("land")


def test_a_snapshot_stays_longer_when_it_is_the_last_of_its_minute_or_hour() -> None:
    history = IcebergHistory(now_ms=START_MS)
    history.commit("genesis")
    landed(history, 400, 20)
    history.readers["late"] = 395
    told = [*rewind_targets(history.past(), POLICY, {}, history.now_ms)]
    by_version = {int(one.version): one for one in told}
    at = {number: (one.at_ms - START_MS) // 1000 for number, one in history.commits.items()}
    left = {number: history.commits[number + 1].at_ms / 1000 for number in at if number + 1 in at}
    last_of_hour = max(number for number in at if at[number] < HOUR)
    assert by_version[last_of_hour].until == left[last_of_hour] + 8 * HOUR
    last_of_minute = max(number for number in at if at[number] < 60 * 30)
    assert by_version[last_of_minute].until == left[last_of_minute] + HOUR
    assert by_version[last_of_minute - 1].until == left[last_of_minute - 1] + 10 * MINUTE
    assert [one.version for one in told if one.until is None] == ["395", "396", "397", "398", "399", "400", "401"]
    assert [one.version for one in told if one.kind == "genesis"] == ["1"]


def test_what_is_written_down_is_bounded_and_has_both_ends() -> None:
    history = DeltaHistory(now_ms=START_MS)
    history.commit("genesis")
    landed(history, 800, 60)
    found = table_history(history.past(), POLICY, {}, history.now_ms, most=30)
    assert (found.versions, found.grains) == (801, (Grain(6 * HOUR),))
    assert len(found.targets) == 30 and found.targets[-1].version == str(history.current) and found.targets[-1].until is None
    oldest = found.targets[0]
    assert oldest.until is not None and 0 < oldest.until - history.now_ms / 1000 <= 60.0, "what goes next is the first one"
    many = tuple(RewindTarget(float(at), str(at), "replay" if at == 300 else "land") for at in range(20_000))
    chosen = chosen_targets(many, 20_000.0, 300)
    assert chosen[0] == many[0] and many[300] in chosen and chosen[-20:] == many[-20:] and len(chosen) < 200


def test_the_file_keeps_all_of_it_and_a_torn_one_is_refused(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    assert read_table_history(control) == {}
    known = {"delta:lake.orders": TableHistory(5.0, (RewindTarget(1.0, "3", "land", 9.0),), 4, (Grain(60.0, 1.0),), ("p",))}
    write_table_history(control, known)
    assert read_table_history(control) == known
    control.table_history.write_text("{")
    with pytest.raises(ValueError, match="JSON"):
        read_table_history(control)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e12, -1.0])
@pytest.mark.parametrize("name", [name for name in HistorySpec.model_fields if name.endswith("_seconds")])
def test_no_time_is_kept_that_is_none(name: str, seconds: float) -> None:
    with pytest.raises(ValidationError, match=name):
        HistorySpec.model_validate({name: seconds})


@pytest.mark.parametrize("properties", [{}, {"delta.logRetentionDuration": "interval 99999999 days"}])
def test_the_longest_past_can_be_written_down(tmp_path: Path, properties: dict[str, str]) -> None:
    control, history = ControlFolder(tmp_path, "orders"), DeltaHistory()
    history.commit("genesis")
    history.commit("land")
    policy = HistorySpec(keep_delta_seconds=MOST_HISTORY_SECONDS, undo_seconds=MOST_HISTORY_SECONDS)
    told = {"delta:lake.orders": table_history(history.past(), policy, properties, history.now_ms)}
    write_table_history(control, told)
    assert read_table_history(control) == told and told["delta:lake.orders"].targets
