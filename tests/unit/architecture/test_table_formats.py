"""A table format is a folder in each room that has a registry per format: no other module names one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.syntax import nodes_of

from lakebound.spec.table_format import TABLE_FORMATS
from lakebound.tables.formats import PerFormat

REPOSITORY = Path(__file__).parents[3]
FOLDERS = ("include/lakebound", "spark_apps/lakebound_spark", "plugins/lakebound_airflow", "dags")
LITERAL = re.compile(rf"({'|'.join(TABLE_FORMATS)})[:.]?", re.IGNORECASE)
"""A format's name, or how a table's id or a property of the format begins."""

EXCEPTIONS = {
    "inspection/doctor/foreign/reading.py": "the registry of readers of tables that are not ours, by what a person writes",
    "local/demo.py": "the demo's own two tables, and its words about them",
    "local/training_run.py": "the pipeline of the training run",
    "tables/places.py": "the folder in which a SQL catalog of Iceberg puts its tables",
}
"""Modules that name a format, with the reason."""

IMPORTERS = {
    "inspection/doctor/foreign/delta_history.py": "reads tables that are not ours by the same lines of a log",
    "operations/backup/archive.py": "a backup has the file of the embedded catalog",
    "operations/backup/plan.py": "a backup has the file of the embedded catalog",
    "operations/backup/restore.py": "a backup has the file of the embedded catalog",
    "maintain/iceberg_actions.py": "Spark's side of the maintenance of Iceberg tables",
    "maintain/iceberg_operations.py": "Spark's side of the maintenance of Iceberg tables",
}
"""Modules that import a format's own, with the reason; who needs another one asks a registry."""


def is_of_a_format(path: Path) -> bool:
    """Whether a module is a format's own, or says what people write."""
    return bool({*path.with_suffix("").parts} & {*TABLE_FORMATS}) or path.is_relative_to("spec")


def docstrings(file: Path) -> set[int]:
    """Return the ids of the constants that stand alone."""
    return {id(node.value) for node in nodes_of(file) if isinstance(node, ast.Expr)}


def literals(file: Path) -> list[int]:
    """Return the lines of a module in which a format is named."""
    if not LITERAL.search(file.read_text()):
        return []
    alone = docstrings(file)
    return [
        node.lineno
        for node in nodes_of(file)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in alone
        and LITERAL.fullmatch(node.value)
    ]


def imports(file: Path) -> bool:
    """Whether a module imports one of ``lakebound.tables.<format>``."""
    own = re.compile(rf"lakebound\.tables\.({'|'.join(TABLE_FORMATS)})(\.|$)")
    if "lakebound.tables." not in file.read_text():
        return False
    names = [node.module for node in nodes_of(file) if isinstance(node, ast.ImportFrom) and node.module]
    return any(own.match(name) for name in names)


def named() -> dict[str, list[int]]:
    """Return the lines in which modules name a format, other than the formats' own and ``spec``."""
    found = {}
    for folder in FOLDERS:
        for file in sorted((REPOSITORY / folder).rglob("*.py")):
            path = file.relative_to(REPOSITORY / folder)
            if not is_of_a_format(path) and (lines := literals(file)):
                found[path.as_posix()] = lines
    return found


def test_no_module_names_a_format_but_the_formats_own() -> None:
    found = named()
    assert {name: lines for name, lines in found.items() if name not in EXCEPTIONS} == {}, "ask a registry: tables/formats.py"
    assert sorted(found) == sorted(EXCEPTIONS), "an exception that is not needed any more"


def test_no_module_imports_a_format_but_the_formats_own() -> None:
    found = {
        path.as_posix()
        for folder in FOLDERS
        for file in (REPOSITORY / folder).rglob("*.py")
        if not is_of_a_format(path := file.relative_to(REPOSITORY / folder)) and imports(file)
    }
    assert found - {*IMPORTERS} == set(), "ask a registry: tables/formats.py"
    assert {*IMPORTERS} - found == set(), "an exception that is not needed any more"


def test_a_name_of_a_format_is_found(tmp_path: Path) -> None:
    module = tmp_path / "one.py"
    module.write_text('"""delta"""\nif spec.format == "delta" or spec.id.startswith("iceberg:"):\n    x = "a delta"\n')
    assert literals(module) == [2, 2]


def registries() -> Iterator[tuple[str, str]]:
    """Yield what each ``PerFormat`` of the code is made with."""
    for folder in FOLDERS:
        for file in sorted((REPOSITORY / folder).rglob("*.py")):
            if "PerFormat(" not in file.read_text():
                continue  # asked while pytest collects, in each process: all modules would take seconds
            for node in nodes_of(file):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "PerFormat":
                    room, name = (ast.literal_eval(one) for one in node.args)
                    yield room, name


REGISTRIES = sorted(set(registries()))


def test_there_are_registries() -> None:
    assert len(REGISTRIES) > 10


@pytest.mark.parametrize("table_format", TABLE_FORMATS)
@pytest.mark.parametrize(("room", "name"), REGISTRIES)
def test_each_format_has_what_a_registry_asks_for(room: str, name: str, table_format: str) -> None:
    assert PerFormat[object](room, name).of(table_format) is not None
