"""What a test module may not do: be imported for what it has beside its tests, and keep the whole process from sleeping.

Helpers of tests lie in tests/support.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.syntax import nodes_of

TESTS = Path(__file__).parents[2]
ALL_SLEEP = re.compile(r"""\btime["']?, ["']sleep["']|["'][\w.]*\btime\.sleep["']""")
PAUSES = "support/pauses/file_operations.py"
"""Its actors pass a gate instead, and everybody else sleeps as before."""
IMPORT = re.compile(r"^\s*from \S*\b(test_\w+|conftest) import", re.MULTILINE)


def borrowed(file: Path) -> list[str]:
    """Return what the file imports from modules that only pytest should import, but for tests that it runs again."""
    found = []
    for node in nodes_of(file):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[-1].startswith(("test_", "conftest")):
            names = [alias.name for alias in node.names]
            runs_again = any(name.startswith("test_") for name in names)
            found += [] if runs_again else [f"{node.module}: {name}" for name in names]
    return found


def test_nothing_is_imported_from_a_test_module() -> None:
    suspects = [path for path in TESTS.rglob("*.py") if IMPORT.search(path.read_text())]
    found = {path.relative_to(TESTS).as_posix(): borrowed(path) for path in suspects}
    assert found, "some run the tests of another module again"
    assert {name: names for name, names in found.items() if names} == {}


def test_nobody_keeps_the_whole_process_from_sleeping() -> None:
    """Py4J's thread would not rest either: it made one test of 4 CPU seconds take 26."""
    found = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("*.py") if ALL_SLEEP.search(path.read_text())]
    assert found == [PAUSES]
