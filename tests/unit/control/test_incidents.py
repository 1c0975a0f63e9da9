"""The newest incidents of a pipeline, for pages that show only these."""

from __future__ import annotations

from pathlib import Path

from lakebound.control.folder import ControlFolder, write_json
from lakebound.control.incidents import newest_incidents


def write_incident(control: ControlFolder, number: int) -> None:
    """Write an incident; a higher number is a newer one."""
    name = f"20261120T1405{number:02d}-abcdef"
    body = {"id": name, "pipeline": control.pipeline, "kind": "unclean_end", "at": number, "what": f"end {number}"}
    write_json(control.incidents / f"{name}.json", body)


def test_the_newest_come_first_and_no_others_are_read(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    assert newest_incidents(control, 3) == ([], [])
    for number in range(5):
        write_incident(control, number)
    (control.incidents / "20261120T140500-abcdef.json").write_text("{")  # the oldest, which nobody asks for
    found, problems = newest_incidents(control, 3)
    assert [incident.what for incident in found] == ["end 4", "end 3", "end 2"]
    assert not problems


def test_one_that_cannot_be_read_is_named_and_hides_no_other(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    write_incident(control, 1)
    (control.incidents / "20261120T140502-abcdef.json").write_text("{")
    found, problems = newest_incidents(control, 3)
    assert [incident.what for incident in found] == ["end 1"]
    assert len(problems) == 1 and "20261120T140502-abcdef.json cannot be read" in problems[0]
