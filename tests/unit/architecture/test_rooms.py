"""Every folder of the code says what it is for, and names what other rooms import from it. The floors: import-linter."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from graphlib import TopologicalSorter
from pathlib import Path
from typing import cast

import pytest
from tests.support.syntax import nodes_of

REPOSITORY = Path(__file__).parents[3]
ROOTS = {"lakebound": "include", "lakebound_airflow": "plugins", "lakebound_spark": "spark_apps"}
NAMED = re.compile(r"Other rooms import (.*?)\.\s*$", re.DOTALL)


def module_of(file: Path, base: Path) -> str:
    """Return the dotted name of a file; a package is its ``__init__``."""
    return ".".join(file.relative_to(base).with_suffix("").parts).removesuffix(".__init__")


FILES = {
    module_of(file, REPOSITORY / base): file
    for package, base in ROOTS.items()
    for file in sorted((REPOSITORY / base / package).rglob("*.py"))
}
FOLDERS = sorted(module for module, file in FILES.items() if file.name == "__init__.py")


def imported(file: Path, *, for_types: bool = True) -> set[str]:
    """Return the modules of the project that a file imports, at its top, in a function, or for the sake of types."""
    found = set()
    ifs = [node for node in nodes_of(file) if isinstance(node, ast.If) and is_for_types(node.test)]
    skipped = set() if for_types else {child for node in ifs for child in node.body}
    for node in (node for node in nodes_of(file) if node not in skipped):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(name if name in FILES else node.module for name in names)
    return found & set(FILES)


def is_for_types(test: ast.expr) -> bool:
    """Whether what stands below this condition is only for the sake of types."""
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def room_of(module: str) -> str:
    """Return the room: the first folder below a package."""
    return ".".join(module.split(".")[:2])


@pytest.fixture(scope="module")
def used_outside() -> dict[str, set[str]]:
    """Of each folder, its own modules that another room imports."""
    users = dict(FILES)
    entries = (file for base in ("spark_apps", "dags") for file in (REPOSITORY / base).glob("*.py"))
    users.update({f"entry {file.relative_to(REPOSITORY)}": file for file in entries})
    used = defaultdict(set)
    for user, file in users.items():
        for module in imported(file):
            folder, _, name = module.rpartition(".")
            if room_of(user) != room_of(module) and FILES[module].name != "__init__.py" and folder not in ROOTS:
                used[folder].add(name)
    return used


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_what_it_is_for_and_what_others_import_from_it(folder: str, used_outside: dict[str, set[str]]) -> None:
    said = ast.get_docstring(cast(ast.Module, nodes_of(FILES[folder])[0])) or ""
    assert re.match(r"[A-Z][^\n]+[.:]", said), f"{FILES[folder]} has no sentence"
    named = NAMED.search(said)
    names = set(re.findall(r"``(\w+)``", named.group(1))) if named else set()
    assert names == used_outside.get(folder, set()), f"{FILES[folder]} does not name what other rooms import"


def test_a_folder_passes_no_names_on() -> None:
    importing = [module for module in FOLDERS if imported(FILES[module])]
    assert importing == ["lakebound.cli"], "import from the module itself; the command alone is put together in a package"


@pytest.mark.parametrize("parent", ["lakebound_airflow", "lakebound_spark", "lakebound.operations"])
def test_folders_and_modules_import_in_no_circle(parent: str) -> None:
    uses: dict[str, set[str]] = defaultdict(set)
    for module, file in FILES.items():
        if module.startswith(f"{parent}."):
            own = below(parent, module)
            used = imported(file, for_types=False)
            uses[own] |= {below(parent, name) for name in used if name.startswith(f"{parent}.")} - {own}
    TopologicalSorter(uses).prepare()  # a CycleError names the circle


def below(parent: str, module: str) -> str:
    """Return the folder or module right below a package."""
    return module.removeprefix(f"{parent}.").partition(".")[0]
