"""``make audit`` asks about every package of the lock, in its version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from lakebound.local.locked_packages import as_script

REPOSITORY = Path(__file__).parents[3]


def test_every_locked_package_is_audited_in_its_version() -> None:
    lock = (REPOSITORY / "requirements.lock").read_text()
    lines = as_script(lock).splitlines()
    assert (lines[0], lines[-1]) == ("# /// script", "# ///")
    asked = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines[1:-1]))
    pins = [line for line in lock.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    assert len(asked["dependencies"]) == len(pins) > 200
    for one, pin in zip(asked["dependencies"], pins, strict=True):
        assert re.sub(r"\s", "", pin.removesuffix("\\")) == re.sub(r"\s", "", one)


def test_the_python_versions_are_those_of_the_project() -> None:
    wanted = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f'requires-python = "{wanted}"' in as_script("")
