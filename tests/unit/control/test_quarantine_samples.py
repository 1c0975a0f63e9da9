"""Samples of the quarantine: the newest of each reason, bounded, private, and gone where nobody wants them any more."""

from __future__ import annotations

import logging
import stat
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebound.control.folder import ControlFolder
from lakebound.control.quarantine_samples import (
    AHEAD_SECONDS,
    KEPT_SECONDS,
    MAX_BYTES,
    MOST_REASONS,
    QuarantineSample,
    newest_samples,
    read_samples,
    write_samples,
)
from lakebound.errors import LeaseLostError
from lakebound.landing.sample_recorder import SampleRecorder
from lakebound.operations.backup.manifest import is_state

NOW = 1_800_000_000.0
SECRET = "canary-8f21"
ONE = QuarantineSample("not_json", NOW, "orders", 0, 7, error="e", value=SECRET, value_bytes=11)


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def sample(offset: int, reason: str = "not_json", at: float = NOW) -> QuarantineSample:
    return replace(ONE, offset=offset, reason=reason, at=at)


def test_the_newest_of_each_reason_stay_each_record_once() -> None:
    found = newest_samples([sample(1), sample(2), sample(2, at=NOW + 1), sample(3), sample(4, "transform")], 2, NOW + 1)
    assert [(one.reason, one.offset) for one in found] == [("not_json", 2), ("transform", 4), ("not_json", 3)]
    assert newest_samples([sample(1, at=NOW - KEPT_SECONDS - 1)], 2, NOW) == ()
    many = [sample(number, f"reason {number}", NOW + number) for number in range(50)]
    assert [one.offset for one in newest_samples(many, 2, NOW + 50)] == [*range(49, 49 - MOST_REASONS, -1)]


def test_the_file_is_private_bounded_and_no_part_of_a_backup(control: ControlFolder) -> None:
    assert read_samples(control, NOW) == ()
    write_samples(control, [replace(sample(number), value="x" * 1000) for number in range(1000)])
    said = control.quarantine_samples.stat()
    assert said.st_size <= MAX_BYTES + 100 and stat.S_IMODE(said.st_mode) == 0o600
    found = read_samples(control, NOW)
    assert [one.offset for one in found] == [*range(len(found))] and len(found) > 50
    assert read_samples(control, NOW + KEPT_SECONDS + 1) == ()
    assert not is_state(PurePosixPath(control.quarantine_samples.name)) and is_state(PurePosixPath("progress.json"))


def test_it_is_written_every_ten_seconds_and_goes_on_after_a_restart(control: ControlFolder) -> None:
    clock = Clock()
    first = SampleRecorder(control, 2, clock, clock)
    first.tick()
    assert not control.quarantine_samples.exists(), "nothing came"
    for number in range(20):
        clock.now = NOW + number
        first.add([sample(number, at=clock.now)])
        first.tick()
    assert [one.offset for one in read_samples(control, NOW)] == [10, 9]
    first.end()
    second = SampleRecorder(control, 3, clock, clock)
    second.tick()
    second.add([sample(30, "transform", clock.now)])
    second.end()
    assert [one.offset for one in read_samples(control, NOW)] == [30, 19, 18]
    second.add([sample(31)])
    second.tick()
    assert len(read_samples(control, NOW)) == 3, "who has ended writes nothing more"


def test_without_the_request_what_an_earlier_application_kept_is_removed(control: ControlFolder) -> None:
    write_samples(control, [ONE])
    closed = SampleRecorder(control, 0)
    closed.close()
    closed.tick()
    assert control.quarantine_samples.exists(), "another application has the lease"
    SampleRecorder(control, 0).tick()
    assert not control.quarantine_samples.exists()


def test_a_file_that_cannot_be_read_is_replaced_and_no_log_quotes_it(
    control: ControlFolder, caplog: pytest.LogCaptureFixture
) -> None:
    control.folder.mkdir(parents=True)
    control.quarantine_samples.write_text(f'[{{"value": "{SECRET}"}}]')
    recorder = SampleRecorder(control, 2, Clock())
    recorder.add([ONE])
    with caplog.at_level(logging.DEBUG):
        recorder.end()
        control.quarantine_samples.unlink()
        control.quarantine_samples.mkdir()
        failing = SampleRecorder(control, 2, Clock())
        failing.add([ONE])
        failing.tick()
        failing.tick()
    assert caplog.text.count("cannot be written; this is tried again") == 1 and SECRET not in caplog.text


def test_samples_of_a_clock_that_was_ahead_are_dropped_and_hide_none(control: ControlFolder) -> None:
    ahead = [sample(number, at=NOW + 9000) for number in range(5)]
    assert newest_samples([*ahead, sample(3), sample(9, at=NOW + AHEAD_SECONDS)], 2, NOW) == (
        sample(9, at=NOW + AHEAD_SECONDS),
        sample(3),
    )
    write_samples(control, ahead)
    assert read_samples(control, NOW) == ()
    recorder = SampleRecorder(control, 2, Clock())
    recorder.tick()
    assert SECRET not in control.quarantine_samples.read_text(), "the file forgets them at the start"
    clock = Clock()
    recorder = SampleRecorder(control, 2, clock, lambda: 0.0)
    clock.now = NOW + 9000
    recorder.add(ahead)
    clock.now = NOW
    recorder.end()
    assert SECRET not in control.quarantine_samples.read_text(), "the clock was set back meanwhile"


def test_a_clock_set_back_does_not_stop_the_writing(control: ControlFolder) -> None:
    clock, seconds = Clock(), Clock()
    recorder = SampleRecorder(control, 2, clock, seconds)
    recorder.add([sample(1)])
    recorder.tick()
    clock.now, seconds.now = NOW - 3600, seconds.now + 10
    recorder.add([sample(2, at=clock.now)])
    recorder.tick()
    assert [one.offset for one in read_samples(control, clock.now)] == [2]


def test_without_the_request_a_file_that_comes_late_is_removed_each_minute_and_at_the_end(control: ControlFolder) -> None:
    seconds = Clock()
    recorder = SampleRecorder(control, 0, monotonic=seconds)
    recorder.add([ONE])
    recorder.tick()
    for wait, is_left in ((59, True), (1, False)):
        write_samples(control, [ONE])
        seconds.now += wait
        recorder.tick()
        assert control.quarantine_samples.exists() is is_left
    write_samples(control, [ONE])
    recorder.end()
    assert not control.quarantine_samples.exists()


@pytest.mark.parametrize("per_reason", [0, 2])
def test_who_lost_the_lease_neither_writes_nor_removes(control: ControlFolder, per_reason: int) -> None:
    def lost() -> None:
        raise LeaseLostError("orders", 1, 2)

    recorder = SampleRecorder(control, per_reason)
    recorder.guard(lost)
    write_samples(control, [sample(99)])
    before = control.quarantine_samples.read_text()
    recorder.add([ONE])
    recorder.tick()
    recorder.end()
    assert control.quarantine_samples.read_text() == before


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["x", "é\x00\\", "x" * 9000, "x" * MAX_BYTES])), max_size=12))
def test_every_reason_has_its_turn_within_the_bound(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[int, str]]
) -> None:
    control = ControlFolder(tmp_path_factory.mktemp("turns"), "orders")
    all_of_them = [replace(sample(n, f"reason {r}", NOW - n), value=value) for n, (r, value) in enumerate(made)]
    write_samples(control, all_of_them)
    assert control.quarantine_samples.stat().st_size <= MAX_BYTES
    # What is too large by itself is left out, and the rest has room.
    assert read_samples(control, NOW) == tuple(one for one in all_of_them if len(one.value or "") < MAX_BYTES)


def test_one_large_sample_takes_no_place_from_those_after_it(control: ControlFolder) -> None:
    large = replace(sample(0), value="x" * MAX_BYTES)
    many = [replace(sample(n), value="x" * 9000) for n in range(1, 40)]
    write_samples(control, [large, *many, sample(90, "transform")])
    found = read_samples(control, NOW)
    assert found[-1].reason == "transform" and 10 < len(found) < 20 and large not in found


def test_a_reason_with_many_samples_leaves_room_for_the_others(control: ControlFolder) -> None:
    first = [replace(sample(n), value="x" * 20_000) for n in range(9)]
    write_samples(control, [*first, *(replace(sample(50 + n, "transform"), value="x" * 20_000) for n in range(2))])
    assert [one.offset for one in read_samples(control, NOW)] == [0, 1, 2, 3, 50, 51]
