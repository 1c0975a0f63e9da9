"""What is read of the state has bounds: a file of somebody else is neither read whole nor parsed without end."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebound.control.desired import readable_desired
from lakebound.control.findings import Finding, Severity, read_sources
from lakebound.control.folder import ControlFolder, read_bytes, read_end, read_json
from lakebound.control.rollup_files import read_file, rollup_file
from lakebound.control.rollups import TEN_SECONDS
from lakebound.control.state_text import clean_text, cut_text, parsed_json

DEEP = "[" * 5000


@given(st.text() | st.sampled_from(["\ud800", "a\udfff", "\U0001f600"]))
def test_a_clean_text_is_one_that_utf8_holds(text: str) -> None:
    clean = clean_text(text)
    assert clean.encode().decode() == clean and len(clean) == len(text)
    assert clean == text or "?" in clean


def test_json_that_is_nested_too_deeply_is_a_mistake_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parsed_json(DEEP)
    control = ControlFolder(tmp_path, "orders")
    assert isinstance(control.findings, Path) and isinstance(control.desired, Path)
    control.findings.mkdir(parents=True)
    (control.findings / "doctor.json").write_text(DEEP)
    found, problems = read_sources(control)
    assert found == [] and "doctor.json cannot be read" in problems[0]
    control.desired.write_text(DEEP)
    assert readable_desired(control.desired) is None


def test_no_more_is_read_than_a_file_may_have(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(b"[1,2,3]\n")
    assert read_json(file, 8) == [1, 2, 3] and read_bytes(file, 8) == b"[1,2,3]\n"
    with pytest.raises(ValueError, match="has more than 7 bytes"):
        read_json(file, 7)
    assert read_json(tmp_path / "none.json") is None


def test_of_lines_the_last_whole_ones_are_read(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    assert read_end(file, 10) == b""
    file.write_bytes(b"first\nsecond\nthird\n")
    last = [read_end(file, most_bytes) for most_bytes in (19, 18, 7)]
    assert last == [b"first\nsecond\nthird\n", b"second\nthird\n", b"third\n"]


def test_of_rollups_no_more_is_read_than_their_file_may_have(tmp_path: Path) -> None:
    control = ControlFolder(tmp_path, "orders")
    file = rollup_file(control, TEN_SECONDS)
    file.parent.mkdir(parents=True)
    with file.open("wb") as sparse:
        sparse.truncate(1 << 40)
        sparse.seek(0, 2)
        sparse.write(b'\n{"at":50}\n')
    assert [bucket.at for bucket in read_file(control, TEN_SECONDS).buckets] == [50], "a terabyte is not read"


def test_facts_are_such_that_every_message_can_hold_them() -> None:
    evidence = {"a\ud800": "b\udc80", "ratio": float("inf"), "held": True, "rows": 7, "share": 0.5, "none": None}
    found = Finding(cause="c", severity=Severity.INFO, what="w\ud800", since=1.0, evidence=evidence, done="d\udc00")
    assert found.evidence == {"a?": "b?", "ratio": "inf", "held": True, "rows": 7, "share": 0.5, "none": None}
    assert (found.what, found.done) == ("w?", "d?") and type(found.evidence["held"]) is bool


def test_a_long_text_is_cut() -> None:
    assert (cut_text("abc", 3), cut_text("abcd", 3)) == ("abc", "ab…")
