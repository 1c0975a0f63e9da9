"""``make audit``: what the OSV database, or a copy of it, knows of the locked versions; no answer is no good answer."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from lakebound.local.audit import FOUND, NOT_ASKED, is_affected, main, vulnerabilities

LOCK = """requests==2.31.0 \\
    --hash=sha256:00
jinja2[i18n]==3.1.2 ; python_full_version < '3.12' \\
    --hash=sha256:00
jinja2[i18n]==3.1.6 ; python_full_version >= '3.12' \\
    --hash=sha256:00
"""


def affected(name: str = "Jinja2", ecosystem: str = "PyPI", versions: tuple[str, ...] = (), **events: str) -> dict[str, Any]:
    steps = [{kind: at} for kind, at in events.items()]
    ranges = [{"type": "ECOSYSTEM", "events": steps}] if steps else []
    return {"package": {"name": name, "ecosystem": ecosystem}, "versions": list(versions), "ranges": ranges}


def entry(number: int, *items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"id": f"GHSA-{number}", "modified": f"2026-11-{number:02}T00:00:00Z", "affected": list(items), **fields}


@pytest.mark.parametrize(
    ("version", "item", "is_hit"),
    [
        ("3.1.2", affected(versions=("3.1.1", "3.1.2")), True),
        ("3.1.2", affected(versions=("3.1.1",)), False),
        ("3.1.0", affected(versions=("3.1",)), True),
        ("3.1.2", affected(introduced="0", fixed="3.1.3"), True),
        ("3.1.3", affected(introduced="0", fixed="3.1.3"), False),
        ("3.1.3rc1", affected(introduced="0", fixed="3.1.3"), True),
        ("3.10.0", affected(introduced="3.2", fixed="3.9"), False),
        ("3.1.2", affected(introduced="3.1.2"), True),
        ("3.1.1", affected(introduced="3.1.2"), False),
        ("3.1.2", affected(introduced="0", last_affected="3.1.2"), True),
        ("3.1.3", affected(introduced="0", last_affected="3.1.2"), False),
        # What cannot be compared counts: no answer is no good answer.
        ("3.1.2", affected(introduced="0", fixed="the next one"), True),
    ],
)
def test_a_version_is_affected_as_the_database_says(version: str, item: dict[str, Any], is_hit: bool) -> None:
    assert is_affected(version, item) is is_hit


def test_a_version_between_two_ranges_is_not_affected() -> None:
    events = [{"introduced": "4.0"}, {"introduced": "0"}, {"fixed": "3.1.3"}, {"fixed": "4.2"}]
    item = {**affected(), "ranges": [{"type": "ECOSYSTEM", "events": events}, {"type": "GIT", "events": [{"introduced": "0"}]}]}
    assert [is_affected(version, item) for version in ("3.1.2", "3.5", "4.1", "4.2")] == [True, False, True, False]


def test_each_version_of_a_package_is_judged_by_entries_that_stand_and_are_of_its_ecosystem() -> None:
    locked = {"jinja2": {"3.1.2", "3.1.6"}, "requests": {"2.31.0"}}
    entries = [
        entry(1, affected(introduced="0", fixed="3.1.3"), summary="sandbox", aliases=["CVE-1"]),
        entry(2, affected("requests", "npm", introduced="0")),
        entry(3, affected("requests", introduced="0"), withdrawn="2026-01-01T00:00:00Z"),
        entry(4, affected("other", introduced="0")),
        entry(5, affected(versions=("3.1.6",)), details="first line\nsecond"),
    ]
    assert [str(one) for one in vulnerabilities(locked, entries)] == [
        "jinja2 3.1.2: GHSA-1 (CVE-1): sandbox; fixed in: 3.1.3",
        "jinja2 3.1.6: GHSA-5: first line; fixed in: no version",
    ]


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "requirements.lock").write_text(LOCK)
    return "requirements.lock"


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_copy_is_asked_without_internet_and_its_age_is_said(
    tmp_path: Path, lock: str, capsys: pytest.CaptureFixture[str], is_zip: bool
) -> None:
    bodies = {"1": entry(1, affected(introduced="0", fixed="3.1.3")), "9": entry(9, affected("other", introduced="0"))}
    copy = tmp_path / ("all.zip" if is_zip else "copy")
    if is_zip:
        with zipfile.ZipFile(copy, "w") as file:
            for name, body in bodies.items():
                file.writestr(f"{name}.json", json.dumps(body))
    else:
        copy.mkdir()
        for name, body in bodies.items():
            (copy / f"{name}.json").write_text(json.dumps(body))
    assert main([lock, "--offline", str(copy)]) == FOUND
    said = capsys.readouterr().out
    assert "jinja2 3.1.2: GHSA-1" in said and "3.1.6" not in said
    assert "1 known vulnerabilities in 2 locked packages" in said and "the newest of 2026-11-09" in said


@pytest.mark.parametrize("content", [None, b"no zip", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_copy_is_no_good_answer(
    tmp_path: Path, lock: str, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    copy = tmp_path / "all.zip"
    if content is not None:
        copy.write_bytes(content)
    assert main([lock, "--offline", str(copy)]) == NOT_ASKED
    assert "NOT DONE" in capsys.readouterr().err


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (1, FOUND), (2, NOT_ASKED), (101, NOT_ASKED)])
def test_a_database_that_cannot_be_asked_is_said(
    tmp_path: Path, lock: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], code: int, expected: int
) -> None:
    uv = tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\nexit {code}\n")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([lock]) == expected
    assert ("NOT DONE" in capsys.readouterr().err) is (expected == NOT_ASKED)
    assert "jinja2[i18n]==3.1.2" in (tmp_path / ".lakebound" / "locked_packages.py").read_text()
