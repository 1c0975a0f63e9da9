"""A test that fails beside others runs once more, alone; a test that always fails fails the run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.failed_again import MOST_TESTS, TESTS_FAILED, Outcome, run

ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path(__file__).with_name("seen")
    failed = not seen.exists()
    seen.touch()
    assert not failed
"""
GOOD = """
def test_good():
    assert True
"""
ALWAYS = """
def test_always_fails():
    assert False
"""
MANY = f"""
import pytest

@pytest.mark.parametrize("number", range({MOST_TESTS + 1}))
def test_many(number):
    assert False
"""


@pytest.mark.parametrize(
    ("processes", "tests", "exit_code", "unstable"),
    [
        pytest.param(2, [GOOD, ONCE], 0, ["test_1.py::test_fails_once"], id="one passes alone"),
        pytest.param(0, [ONCE, ALWAYS], TESTS_FAILED, ["test_0.py::test_fails_once"], id="one never passes"),
        pytest.param(0, [MANY], TESTS_FAILED, [], id="too many"),
    ],
)
def test_what_fails_runs_once_more(
    processes: int,
    tests: list[str],
    exit_code: int,
    unstable: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of all plugins of the environment one is needed here, and finding and importing the others takes seconds.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    folder, cache, settings = tmp_path / "suite", tmp_path / "cache", tmp_path / "suite" / "pytest.ini"
    folder.mkdir()
    settings.write_text("[pytest]\n")
    for number, text in enumerate(tests):
        (folder / f"test_{number}.py").write_text(text)
    arguments = ["-q", "-n", str(processes), "--dist", "loadgroup", "--rootdir", str(folder), "-c", str(settings), str(folder)]
    assert run(arguments, cache) == Outcome(exit_code, tuple(unstable))
