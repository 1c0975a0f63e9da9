"""Findings are what a source said last."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from tests.support.worlds.said_findings import read_findings

from lakebound.alerts.model import Message, MessageKind, ToldAlert
from lakebound.alerts.wording import Links, html_of, text_of
from lakebound.control.findings import Finding, Severity, read_sources, told_by_others, write_findings
from lakebound.control.folder import ControlFolder
from lakebound.control.status import read_facts, status_of
from lakebound.settings import load_settings

LATE = Finding(cause="freshness", severity=Severity.WARNING, what="Rows come late.", since=1.0, evidence={"p99_seconds": 9.5})


@pytest.fixture
def control(tmp_path: Path) -> ControlFolder:
    return ControlFolder(tmp_path, "orders")


def test_nothing_was_said(control: ControlFolder) -> None:
    assert read_findings(control) == []


def test_each_source_speaks_for_itself_and_its_last_word_counts(control: ControlFolder) -> None:
    write_findings(control, "validation", [])
    write_findings(control, "objectives", [LATE, LATE.model_copy(update={"cause": "lag"})])
    write_findings(control, "objectives", [LATE])
    said = read_findings(control)
    assert [(findings.source, findings.pipeline, findings.findings) for findings in said] == [
        ("objectives", "orders", (LATE,)),
        ("validation", "orders", ()),
    ]


def test_a_source_has_a_name_that_can_be_a_file(control: ControlFolder) -> None:
    with pytest.raises(ValidationError):
        write_findings(control, "../doctor", [])
    assert not control.findings.exists()


@pytest.mark.parametrize(("since", "shown"), [(1e300, "9999-12-31"), (-1e300, "1970-01-01"), ("NaN", "1970-01-01")])
def test_a_time_that_no_calendar_knows_is_told_as_the_nearest_one(control: ControlFolder, since: object, shown: str) -> None:
    body = {
        "source": "theirs",
        "pipeline": "orders",
        "at": since,
        "findings": [LATE.model_dump(mode="json") | {"since": since}],
    }
    control.findings.mkdir(parents=True)
    (control.findings / "theirs.json").write_text(json.dumps(body))
    ((found,),) = [findings.findings for findings in read_findings(control)]
    told = ToldAlert(id="1", source="theirs", **found.model_dump())
    message = Message(id="m", kind=MessageKind.OPENED, pipeline="orders", alerts=(told,), at=1.0)
    assert shown in text_of(message, Links()) and shown in html_of(message, Links())


def test_status_tells_what_only_its_source_says(control: ControlFolder) -> None:
    wrong = Finding(cause="rows", severity=Severity.CRITICAL, what="9 rows.\nMore.", since=1.0, runbook="validation-failed")
    write_findings(control, "validation", [LATE, wrong])
    write_findings(control, "doctor", [wrong])
    settings = replace(load_settings(), home=control.home)
    status = status_of(read_facts("orders", None, settings), 9.0)
    told = ["critical (validation): 9 rows. (runbook validation-failed)", "warning (validation): Rows come late."]
    assert [note for note in status.notes if "validation" in note] == told
    assert told_by_others(read_sources(control)[0], most=1) == [told[0], "1 more: lakebound alerts"]
