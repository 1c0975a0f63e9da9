from __future__ import annotations

from pathlib import Path

import pytest

from lakebound.control import desired
from lakebound.control.desired import (
    Desired,
    LostDesired,
    RunBound,
    change_desired,
    keep_desired,
    read_desired,
    request_stop,
)
from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.control.submission import Submission, write_submission
from lakebound.errors import HeldError


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def test_a_pipeline_of_which_nobody_said_anything_is_wanted_running(control: ControlFolder) -> None:
    assert read_desired(control).wants_app
    assert read_desired(control).generation == 0


def test_a_desired_state_that_was_written_and_is_gone_is_a_hold(control: ControlFolder) -> None:
    change_desired(control, "stopped", by="alice")
    control.desired.unlink()
    found = read_desired(control)
    assert isinstance(found, LostDesired) and found.state == "held" and "desired.json" in found.reason
    with pytest.raises(HeldError, match=r"desired\.json"):
        change_desired(control, "running", restart=True, release_hold=False)
    assert change_desired(control, "running").wants_app
    assert not isinstance(read_desired(control), LostDesired)


def test_the_first_start_writes_the_desired_state_that_nobody_asked_for(control: ControlFolder) -> None:
    keep_desired(control)
    assert read_desired(control) == Desired()
    keep_desired(control)
    control.desired.unlink()
    keep_desired(control)
    assert read_desired(control).state == "held", "a later start does not write it again"


def test_a_desired_state_from_before_the_sign_is_kept(control: ControlFolder) -> None:
    write_json(control.desired, Desired(state="stopped", generation=3).model_dump())
    keep_desired(control)
    assert read_desired(control) == Desired(state="stopped", generation=3)
    assert control.desired_sign.exists()


def test_a_lost_desired_state_has_the_generation_of_the_newest_application(control: ControlFolder) -> None:
    change_desired(control, "running", restart=True)
    write_submission(control, Submission(app_id="app-1", generation=1))
    control.desired.unlink()
    assert read_desired(control).generation == 1
    control.submission.write_text("{")
    assert read_desired(control).state == "held"


def test_the_first_desired_state_of_another_process_is_no_loss(control: ControlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a reader's look at the file and its look at the sign, somebody writes both."""
    looked, first = desired._read, []

    def read_before_it_is_written(folder: ControlFolder) -> Desired | None:
        found = looked(folder)
        if not first:
            first.append(found)
            monkeypatch.setattr(desired, "_read", looked)
            change_desired(folder, "stopped")
        return found

    monkeypatch.setattr(desired, "_read", read_before_it_is_written)
    assert read_desired(control).state == "stopped" and first == [None]


def test_stop_and_start_do_not_make_a_new_generation(control: ControlFolder) -> None:
    change_desired(control, "stopped", reason="upgrade", by="alice")
    assert not read_desired(control).wants_app
    assert change_desired(control, "running").generation == 0


def test_a_restart_another_freshness_or_a_bound_does(control: ControlFolder) -> None:
    assert change_desired(control, "running", restart=True).generation == 1
    assert change_desired(control, "running", freshness="5s").generation == 2
    assert change_desired(control, "running", freshness="5s").generation == 2
    assert change_desired(control, "running", until=RunBound(timestamp_ms=1)).generation == 3


def test_a_hold_is_not_ended_by_a_restart(control: ControlFolder) -> None:
    change_desired(control, "held", reason="rewind under way")
    with pytest.raises(HeldError, match="rewind under way"):
        change_desired(control, "running", restart=True, release_hold=False)
    assert read_desired(control).state == "held"
    assert change_desired(control, "running").state == "running"


def test_a_stop_request_is_for_one_application(control: ControlFolder) -> None:
    request_stop(control, "app-1", reason="cleared", by="bob")
    assert read_json(control.stop_marker("app-1"))["by"] == "bob"
    assert read_json(control.stop_marker("app-2")) is None
    assert read_desired(control).wants_app


def test_a_file_is_replaced_in_one_step_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    write_json(path, {"n": 1}, durable=True)
    write_json(path, {"n": 2})
    assert read_json(path) == {"n": 2}
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]
