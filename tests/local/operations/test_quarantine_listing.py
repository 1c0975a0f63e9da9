"""The quarantine as a person sees it, from real tables of both formats and without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.tables.quarantined import Quarantined, rows_of, span

from lakebound.cli.quarantine import _print
from lakebound.formats.reasons import WINDOW_REASONS
from lakebound.operations.release.listing import escaped, list_quarantine
from lakebound.operations.release.plan import NotReplayableError, prepare
from lakebound.tables.places import Places, local_places

BAD = [
    *((offset, "does_not_fit", b'{"n": "%d"}' % offset) for offset in range(10, 20)),
    *((offset, "malformed_json", b"\xff\x1b[31m" + b"x" * 500) for offset in range(30, 33)),
    (40, "null_value", None),
    (50, "expectation amount_is_positive", b"{}"),
    (51, "copy:null_value", b"{}"),
]


@pytest.fixture(params=["delta", "iceberg"])
def world(request: pytest.FixtureRequest, at: Places) -> Quarantined:
    """A quarantine in either format."""
    return Quarantined(at, BAD, end=100, quarantine_format=request.param)


def test_it_is_counted_by_reason_with_the_newest_to_look_at(world: Quarantined) -> None:
    found = list_quarantine(world.spec, world.at, samples=2)
    counts = {one.reason: (one.records, one.open, one.copies, one.is_replayable) for one in found.reasons}
    assert counts == {
        "does_not_fit": (10, 10, 0, True),
        "malformed_json": (3, 3, 0, True),
        "null_value": (2, 1, 1, True),
        "expectation amount_is_positive": (1, 0, 1, False),
    }
    assert (found.open, found.copies) == (14, 2)
    by_reason = {one.reason: one.samples for one in found.reasons}
    newest = by_reason["does_not_fit"]
    assert [(one.offset, one.value, one.error) for one in newest] == [
        (19, '{"n": "19"}', "does_not_fit of 19"),
        (18, '{"n": "18"}', "does_not_fit of 18"),
    ]
    assert by_reason["null_value"][1].value is None and by_reason["null_value"][1].value_bytes is None
    assert [(one.offset, one.is_copy) for one in by_reason["null_value"]] == [(51, True), (40, False)]
    assert [(one.offset, one.is_copy) for one in by_reason["expectation amount_is_positive"]] == [(50, True)]
    (first, _) = by_reason["malformed_json"]
    assert first.value is not None and first.value.startswith("\\xff\\x1b[31mxxx") and first.value.endswith("…")
    assert first.value_bytes == 506


def test_a_record_that_is_in_no_window_is_no_copy_of_a_landed_row(at: Places) -> None:
    world = Quarantined(at, [(offset, reason, b"{}") for offset, reason in enumerate(WINDOW_REASONS)], end=100)
    found = list_quarantine(world.spec, world.at)
    assert {one.reason: (one.open, one.copies) for one in found.reasons} == dict.fromkeys(WINDOW_REASONS, (1, 0))
    assert not any(one.is_replayable or one.samples[0].is_copy for one in found.reasons)


def test_one_reason_alone(world: Quarantined) -> None:
    found = list_quarantine(world.spec, world.at, reason="null_value")
    assert [(one.reason, one.records, [s.offset for s in one.samples]) for one in found.reasons] == [
        ("null_value", 2, [51, 40])
    ]
    assert list_quarantine(world.spec, world.at, reason="nothing").reasons == ()


def test_what_every_table_has_released_is_no_longer_open(world: Quarantined) -> None:
    delta, iceberg = world.targets
    world.release(delta, 10, 11, 30)
    assert list_quarantine(world.spec, world.at).open == 14, "the other table lacks them"
    world.release(iceberg, 10, 30)
    found = list_quarantine(world.spec, world.at)
    assert {one.reason: (one.records, one.open) for one in found.reasons} == {
        "does_not_fit": (10, 9),
        "malformed_json": (3, 2),
        "null_value": (2, 1),
        "expectation amount_is_positive": (1, 0),
    }
    assert 30 not in [s.offset for one in found.reasons for s in one.samples]
    plan = prepare(world.spec, world.at)
    assert [(share.lacking, share.landed, share.uncovered) for share in plan.tables] == [(11, 3, 0), (12, 2, 0)]


def test_released_records_whose_entry_is_gone_are_found_by_their_rows(world: Quarantined) -> None:
    for table in world.targets:
        world.release(table, 10, 11)
        world.commit(table, None, kind="reset", coverage=span((0, 100)), released=2)
    found = list_quarantine(world.spec, world.at)
    assert found.open == 12
    for table in world.targets:
        world.commit(table, None, kind="reset", coverage=span((0, 100)), released=5)
    found = list_quarantine(world.spec, world.at)
    assert found.open == 12 and "its rows were read instead" in found.notes[0]


def test_what_was_landed_when_it_was_read_again_is_no_longer_open(world: Quarantined) -> None:
    """No release names it: its rows say so."""
    for table in world.targets:
        world.commit(table, rows_of([10, 11]), range=span((100, 102)), read=2, landed=2, rows=2)
    found = list_quarantine(world.spec, world.at)
    assert found.open == 12 and found.notes == ()
    assert [(share.lacking, share.landed) for share in prepare(world.spec, world.at).tables] == [(12, 2)] * 2
    delta, iceberg = world.targets
    world.release(delta, 12)
    assert list_quarantine(world.spec, world.at).open == 12
    world.release(iceberg, 12)
    assert list_quarantine(world.spec, world.at).open == 11


def test_copies_of_what_landed_are_never_tried(world: Quarantined) -> None:
    assert sum(share.lacking for share in prepare(world.spec, world.at).tables) == 2 * 14
    with pytest.raises(NotReplayableError, match="copies of rows"):
        prepare(world.spec, world.at, "expectation amount_is_positive")


def test_the_command_calls_a_copy_what_it_is(world: Quarantined, capsys: pytest.CaptureFixture[str]) -> None:
    _print(list_quarantine(world.spec, world.at))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    by_reason = [line for line in lines if line.startswith("expectation amount_is_positive")]
    assert len(by_reason) == 2, "the count and the sample"
    assert all("copy of a landed row" in line and "open" not in line for line in by_reason)
    assert any(line.startswith("null_value") and "open, 1 x copy of a landed row" in line for line in lines)
    assert lines[-1].endswith("14 records are open; 2 are copies of landed rows: nothing is missing from the tables")


def test_what_a_table_does_not_cover_is_left_to_the_stream(world: Quarantined) -> None:
    delta, _ = world.targets
    world.commit(delta, None, kind="reset", coverage=span((0, 15)))
    plan = prepare(world.spec, world.at, "does_not_fit")
    assert [(share.lacking, share.uncovered) for share in plan.tables] == [(5, 5), (10, 0)]


def test_there_may_be_no_quarantine_yet(at: Places, tmp_path: Path) -> None:
    world = Quarantined(at, BAD, end=100)
    elsewhere = local_places(tmp_path, tmp_path / "other")
    assert not list_quarantine(world.spec, elsewhere).exists
    assert not prepare(world.spec, elsewhere).is_due


def test_what_is_shown_cannot_move_the_cursor() -> None:
    assert escaped(b"a\x1b[2J\n\xc3\xa4\xff") == "a\\x1b[2J\\nä\\xff"
    assert escaped("é" * 10, 4) == "éé…"
    assert json.dumps(escaped(b"\x00"))
