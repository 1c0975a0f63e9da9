"""Which tests can reach what changed: ``python -m tests.support.reached_tests REVISION`` prints their files.

A test reaches the modules that it imports, and what these import: the same graph from which import-linter judges (grimp). It
reaches, too, what a process runs that it starts. A test or a module of ``tests/support`` says this in a constant ``STARTS``
(modules, and scripts and folders by path), or by naming a module in a text, as ``["-m", "tests.support.s3.server"]`` does. A
fixture of a ``conftest.py`` brings what it uses to the tests that ask for it. A file that is no module is reached by each test
whose text, or a support module's text, names it or a folder in which it lies.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import grimp

from lakebound.formats.schemas import SchemaKind
from lakebound.spec.table_format import TABLE_FORMATS

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("lakebound", "lakebound_spark", "lakebound_airflow", "tests")
FOLDERS = {"include/lakebound": "lakebound", "spark_apps/lakebound_spark": "lakebound_spark"} | {
    "plugins/lakebound_airflow": "lakebound_airflow",
    "tests/support": "tests.support",
}
EVERYTHING = ("pyproject.toml", "requirements.lock", "ivy.xml", "tests/conftest.py")
"""What every test may depend on."""
FOLDERS_OF_KINDS = ("lakebound.alerts.channels", "lakebound.landing.targets", "lakebound_spark.stream.targets")
"""Packages whose modules are found by their names in the folder: who imports the package imports all of them."""
WORDS_OF_ALL = frozenset({"tests", "include", "lakebound", "spark_apps", "plugins", "support", ""})
"""Folders that are named for other reasons."""
_MODULE = re.compile(r"\b(?:lakebound|lakebound_spark|lakebound_airflow|tests\.support)(?:\.\w+)+")
_IMPORTED = re.compile(r"from ((?:lakebound|tests)[\w.]*) import (\w+)")


@dataclass(frozen=True)
class Uses:
    """What one file of tests uses directly.

    Attributes:
        modules: Full names; of something in a module, too.
        paths: Scripts and folders, relative to the repository.
        fixtures: Names of the arguments of its functions.
        text: Of the whole file.
    """

    modules: frozenset[str]
    paths: frozenset[str] = frozenset()
    fixtures: frozenset[str] = frozenset()
    text: str = field(default="", repr=False)


@functools.cache
def uses_of(file: Path) -> Uses:
    """Return what this file of Python uses directly."""
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes, started = tuple(ast.walk(tree)), frozenset(_started(tree))
    modules = {*_imported(nodes), *_MODULE.findall(text), *(f"{a}.{b}" for a, b in _IMPORTED.findall(text))}
    return Uses(
        frozenset(modules | {one for one in started if "/" not in one and not (REPOSITORY / one).exists()}),
        frozenset(one for one in started if (REPOSITORY / one).exists()),
        frozenset(one.arg for node in nodes if isinstance(node, ast.FunctionDef) for one in node.args.args),
        text,
    )


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _started(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(one, ast.Name) and one.id == "STARTS" for one in node.targets):
            yield from ast.literal_eval(node.value)


def _per_format(text: str) -> Iterator[str]:
    """Yield the modules that a registry of table formats imports by the formats' names."""
    for node in ast.walk(ast.parse(text)) if "PerFormat(" in text else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "PerFormat":
            room, name = (ast.literal_eval(one) for one in node.args)
            below = name.rpartition(":")[0]
            yield from (f"{room}.{one}.{below}".rstrip(".") for one in TABLE_FORMATS)


class Reach:
    """What each test can reach, by the imports of the product and of ``tests.support``, and by what these start."""

    def __init__(self) -> None:
        self._graph = grimp.build_graph(*PACKAGES)
        for folder in FOLDERS_OF_KINDS:
            for kind in self._graph.find_children(folder):
                self._graph.add_import(importer=folder, imported=kind)
        for kind in get_args(SchemaKind):  # found by their names, as the folders above
            self._graph.add_import(importer="lakebound.formats.kinds", imported=f"lakebound.formats.{kind}.schema_reader")
        sources = dict(_sources())
        for name, file in sources.items():
            for used in _per_format(file.read_text(encoding="utf-8")):
                if used in self._graph.modules:
                    self._graph.add_import(importer=name, imported=used)
        self._support = {name: file for name, file in sources.items() if name.startswith("tests.support")}
        for name, file in self._support.items():
            uses = uses_of(file)
            for used in {*self._modules(uses.modules), *self._scripts(uses.paths)} - {name}:
                self._graph.add_import(importer=name, imported=used)

    def of_test(self, test: Path) -> tuple[frozenset[str], str]:
        """Return the modules that this test can reach, and the texts in which files may be named."""
        uses = uses_of(test)
        direct = {*self._modules(uses.modules), *self._scripts(uses.paths), *self._of_fixtures(test, uses.fixtures)}
        found = direct.union(*(self._graph.find_upstream_modules(one) for one in direct))
        return frozenset(found), uses.text + "".join(uses_of(self._support[one]).text for one in found & self._support.keys())

    def _modules(self, names: Iterable[str]) -> frozenset[str]:
        """Return the modules among these names: that of ``a.module.Class`` is ``a.module``."""
        return frozenset(one for name in names for one in (name, name.rpartition(".")[0]) if one in self._graph.modules)

    def _scripts(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield the scripts at these paths, which the graph then knows by their dotted paths."""
        for where in (REPOSITORY / path for path in paths):
            for file in sorted(where.rglob("*.py")) if where.is_dir() else [where]:
                name = module_name(file.relative_to(REPOSITORY).as_posix())
                if name not in self._graph.modules:
                    self._graph.add_module(name)
                    for used in self._modules(_imported(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))):
                        self._graph.add_import(importer=name, imported=used)
                yield name

    def _of_fixtures(self, test: Path, wanted: frozenset[str]) -> Iterator[str]:
        """Return what the fixtures bring that the test asks for, also by way of other fixtures."""
        for conftest in (folder / "conftest.py" for folder in test.parents if (folder / "conftest.py").exists()):
            if not conftest.is_relative_to(REPOSITORY / "tests"):
                continue
            functions, names = _functions_and_imports(conftest)
            asked, todo = set[str](), [name for name in wanted if name in functions]
            while todo:
                name = todo.pop()
                if name not in asked:
                    asked.add(name)
                    todo += [one.arg for one in functions[name].args.args if one.arg in functions]
            used = {node.id for name in asked for node in ast.walk(functions[name]) if isinstance(node, ast.Name)}
            inner = {one for name in asked for one in _imported(ast.walk(functions[name]))}
            yield from self._modules({names[one] for one in used if one in names} | inner)


@functools.cache
def _functions_and_imports(file: Path) -> tuple[dict[str, ast.FunctionDef], dict[str, str]]:
    """Return the functions of a module by name, and the full name of each name that it imports."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    names = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}, names


def module_name(file: str) -> str:
    """Return the name by which the graph knows this file of Python: its package's name, or its dotted path."""
    folder = next((one for one in FOLDERS if file.startswith(f"{one}/")), None)
    parts = Path(file.removeprefix(f"{folder}/")).with_suffix("").parts
    return ".".join((*([FOLDERS[folder]] if folder else []), *(part for part in parts if part != "__init__")))


def _sources() -> Iterator[tuple[str, Path]]:
    for folder in FOLDERS:
        for file in (REPOSITORY / folder).rglob("*.py"):
            yield module_name(file.relative_to(REPOSITORY).as_posix()), file


def reached_tests(changed: Iterable[str]) -> list[str]:
    """Return the files of tests that can reach one of these changed files; paths are relative to the repository."""
    files = frozenset(changed)
    if files & frozenset(EVERYTHING):
        return [test.relative_to(REPOSITORY).as_posix() for test in _tests()]
    names = frozenset(module_name(file) for file in files if file.endswith(".py"))
    words = [_words(file) for file in sorted(files) if not file.endswith(".py")]
    return [test for test, reach in _reach_of_tests().items() if test in files or _is_reached(reach, names, words)]


@functools.cache
def _reach_of_tests() -> dict[str, tuple[frozenset[str], str]]:
    """Return what each file of tests can reach; a process asks once, because the graph takes seconds."""
    reach = Reach()
    return {test.relative_to(REPOSITORY).as_posix(): reach.of_test(test) for test in _tests()}


def _tests() -> list[Path]:
    return sorted((REPOSITORY / "tests").rglob("test_*.py"))


def _is_reached(reach: tuple[frozenset[str], str], names: frozenset[str], words: list[re.Pattern[str]]) -> bool:
    modules, text = reach
    return bool(modules & names) or any(word.search(text) for word in words)


def _words(file: str) -> re.Pattern[str]:
    """Return what finds the file's name, or a folder in which it lies, as a word within quotes."""
    path = Path(file)
    named = sorted({path.name, *path.parent.parts} - WORDS_OF_ALL)
    return re.compile(rf"""["'/](?:{"|".join(map(re.escape, named))})["'/]""")


def changed_since(revision: str) -> list[str]:
    """Return the files that differ from this revision, also those that are not committed or not yet known to git."""
    asked = (["diff", "--name-only", revision], ["ls-files", "--others", "--exclude-standard"])
    found = [subprocess.run(["git", *one], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout for one in asked]
    return sorted(frozenset("".join(found).split("\n")) - {""})


def main() -> None:
    """Print the files of tests that can reach what changed since the revision of the command line."""
    print("\n".join(reached_tests(changed_since(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))))


if __name__ == "__main__":
    main()
