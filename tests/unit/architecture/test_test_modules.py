"""Helpers of tests lie in tests/support: no test module and no conftest is imported for what it has beside its tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.support.syntax import nodes_of

TESTS = Path(__file__).parents[2]
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
