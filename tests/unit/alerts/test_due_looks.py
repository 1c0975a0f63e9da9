"""When the doctor's look at a pipeline is due: what is known of one pipeline keeps no other from its look."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from lakebound.alerts import doctor_processes
from lakebound.alerts.doctor_processes import LOOK_EVERY_SECONDS, due_looks
from lakebound.control.code_samples import NEW_LOOK_EVERY_SECONDS, NEW_SECONDS
from lakebound.control.findings import write_findings
from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.progress import Progress, SourceProgress
from lakebound.settings import Settings, load_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(load_settings(), home=tmp_path)


def looked_at(settings: Settings, pipeline: str, code_since: float) -> ControlFolder:
    """Return the folder of a pipeline that was looked at now, and whose code is of that time."""
    control = ControlFolder(settings.home, pipeline)
    write_findings(control, "doctor", ())
    source = SourceProgress(hash="abc", since=code_since)
    progress = Progress(pipeline=pipeline, app_id="a", started_at=code_since, updated_at=code_since, source=source)
    write_json(control.progress, progress.model_dump(mode="json"))
    return control


def test_new_code_is_looked_at_each_minute_and_other_code_as_before(settings: Settings) -> None:
    now = time.time()
    looked_at(settings, "new", now)
    looked_at(settings, "old", now - NEW_SECONDS - LOOK_EVERY_SECONDS)
    assert due_looks(settings, ["new", "old"], now + NEW_LOOK_EVERY_SECONDS / 2) == []
    assert due_looks(settings, ["new", "old"], now + NEW_LOOK_EVERY_SECONDS + 5) == ["new"]
    assert due_looks(settings, ["new", "old"], now + LOOK_EVERY_SECONDS + 5) == ["new", "old"]


@pytest.mark.parametrize("is_torn", [True, False])
def test_a_progress_that_cannot_be_read_keeps_no_pipeline_from_its_look(settings: Settings, is_torn: bool) -> None:
    now = time.time()
    control = looked_at(settings, "torn", now)
    looked_at(settings, "well", now)
    if is_torn:
        (control.folder / "progress.json").write_text("{torn")
    else:
        (control.folder / "progress.json").unlink()
        (control.folder / "progress.json").mkdir()
    assert due_looks(settings, ["torn", "well"], now + NEW_LOOK_EVERY_SECONDS + 5) == ["well"]
    assert due_looks(settings, ["torn", "well"], now + LOOK_EVERY_SECONDS + 5) == ["torn", "well"]


def test_the_progress_is_not_read_before_a_look_can_be_due(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    looked_at(settings, "new", now)
    monkeypatch.setattr(doctor_processes, "look_every", lambda *_: pytest.fail("it is read in each round of the watch"))
    assert due_looks(settings, ["new"], now + NEW_LOOK_EVERY_SECONDS / 2) == []
