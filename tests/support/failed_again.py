"""Run pytest; run the tests that failed once more, alone, at the end, and name those that pass then as unstable.

``python -m tests.support.failed_again ARGUMENTS`` takes pytest's arguments. A test that fails beside others and passes alone
has a cause in the test or in the product, but it says nothing about the change that is tested: the run passes, and its last
lines name the test. This list must be empty: each of its tests has a defect to be mended.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

MOST_TESTS = 12
"""More failures than this have one cause, and it is not that the machine was busy: they are not run again."""
TESTS_FAILED = 1
"""pytest's exit code when it ran all tests and some failed; any other one is no matter of single tests."""


@dataclass(frozen=True)
class Outcome:
    """How both runs ended.

    Attributes:
        exit_code: Of the whole.
        unstable: Node ids of the tests that failed in the first run and passed in the second.
    """

    exit_code: int
    unstable: tuple[str, ...] = ()


def run(arguments: Sequence[str], cache: Path) -> Outcome:
    """Run pytest with these arguments, and what failed once more in one process.

    Args:
        arguments: Of pytest.
        cache: An empty folder for what pytest keeps between its runs.

    Returns:
        Exit code 0 if each test passed in one of its runs.
    """
    first = _pytest(arguments, cache)
    failed = _last_failed(cache)
    if first != TESTS_FAILED or not 0 < len(failed) <= MOST_TESTS:
        return Outcome(first)
    print(f"== {len(failed)} of the tests failed: each runs once more, alone", flush=True)
    second = _pytest([*arguments, "-n", "0", "--last-failed", "--last-failed-no-failures", "none"], cache)
    return Outcome(second, tuple(sorted(failed - _last_failed(cache))))


def _pytest(arguments: Sequence[str], cache: Path) -> int:
    command = [sys.executable, "-m", "pytest", *arguments, "-o", f"cache_dir={cache}"]
    return subprocess.run(command, check=False).returncode


def _last_failed(cache: Path) -> frozenset[str]:
    """Return the node ids that pytest has kept: it has no other way to say them to another process."""
    found = cache / "v" / "cache" / "lastfailed"
    return frozenset(json.loads(found.read_text())) if found.exists() else frozenset()


def main() -> int:
    """Run it with the arguments of the command line, and return the exit code."""
    with TemporaryDirectory(prefix="lakebound-failed-again-") as cache:
        outcome = run(sys.argv[1:], Path(cache))
    for test in outcome.unstable:
        print(f"== unstable (failed beside others, passed alone; its cause must be mended): {test}", flush=True)
    return outcome.exit_code


if __name__ == "__main__":
    sys.exit(main())
