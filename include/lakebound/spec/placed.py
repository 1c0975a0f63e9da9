"""A problem of a pipeline, and the line of a file where it is mended: of its YAML, or of its transform."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lakebound.spec.pipeline import PipelineSpec
from lakebound.spec.problem_lines import problem_line, shown_path
from lakebound.spec.yaml_source import Keys, Mistake, YamlSource, read_yaml

Origin = Literal["schema", "transform"]
_SCHEMA: Keys = ("value", "schema")


@dataclass(frozen=True)
class PlacedProblem:
    """What keeps a pipeline from starting, with what is known of its place.

    Attributes:
        what: The problem, and what to do.
        keys: Where in the YAML it is said.
        column: Names down to the column or field that it is about; empty: none.
        origin: Who makes this column: the schema of the records, or the transform.
        file: File of the transform, where the place in it is known.
        line: The line there.
    """

    what: str
    keys: Keys = ()
    column: tuple[str, ...] = ()
    origin: Origin = "schema"
    file: str = ""
    line: int = 0


def placed_problems(bodies: Iterable[Mapping[str, Any]]) -> list[PlacedProblem]:
    """Return problems that came as JSON."""
    return [PlacedProblem(**{**body, "keys": tuple(body["keys"]), "column": tuple(body["column"])}) for body in bodies]


def told(problem: PlacedProblem, spec: PipelineSpec, path: Path, apps: Path) -> str:
    """Return ``FILE:LINE: FIELD: what is wrong``.

    Args:
        problem: The problem.
        spec: Its pipeline.
        path: The pipeline's YAML file.
        apps: Folder of the spark-submit entry points, with the transforms.
    """
    if problem.file:
        return f"{shown_path(Path(problem.file))}:{problem.line}: {problem.what}"
    if problem.column and problem.origin == "transform" and spec.transform is not None:
        file = apps.joinpath(*spec.transform.split(".")[:-1]).with_suffix(".py")
        line = _line_in_transform(file, spec.transform.rpartition(".")[2], problem.column[0])
        if line is not None:
            return f"{shown_path(file)}:{line}: {problem.what}"
    source = read_yaml(path)
    keys, line = _place_in_yaml(problem, source, path)
    return problem_line(path, Mistake(line, problem.what, keys))


def _place_in_yaml(problem: PlacedProblem, source: YamlSource, path: Path) -> tuple[Keys, int]:
    if problem.column and problem.origin == "schema":
        properties: Keys = ("value", "json_schema", "properties", problem.column[0])
        if properties in source.lines:
            return properties, source.line_of(properties)
        if _SCHEMA in source.lines and (line := _line_in_schema(source, path, problem.column)) is not None:
            return _SCHEMA, line
    keys = problem.keys
    while keys and keys not in source.lines:
        keys = keys[:-1]
    return keys, source.line_of(keys)


def _line_in_schema(source: YamlSource, path: Path, column: tuple[str, ...]) -> int | None:
    """Return the line of a column in a schema that may have many lines; of a nested field, after the line of what it is in."""
    start = source.line_of(_SCHEMA)
    end = min((line for line in source.lines.values() if line > start), default=None)
    lines = path.read_text().splitlines()[start - 1 : None if end is None else end - 1]
    at: int | None = None
    for name in column:
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        found = (index for index in range(at or 0, len(lines)) if word.search(lines[index]))
        at = next(found, at)
    return None if at is None else start + at


def _line_in_transform(file: Path, function: str, column: str) -> int | None:
    """Return the last line that names the column, or else where the function begins; None where it cannot be read."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None
    begins = [node.lineno for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == function]
    named = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == column]
    return max(named, default=begins[0] if begins else 1)
