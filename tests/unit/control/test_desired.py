from __future__ import annotations

from pathlib import Path

import pytest

from lakebound.control.desired import RunBound, change_desired, read_desired, request_stop
from lakebound.control.folder import ControlFolder, read_json, write_json
from lakebound.errors import HeldError


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def test_a_pipeline_of_which_nobody_said_anything_is_wanted_running(control: ControlFolder) -> None:
    assert read_desired(control).wants_app
    assert read_desired(control).generation == 0


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
