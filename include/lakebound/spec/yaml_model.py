"""Reads a YAML file as a model, and says of each mistake in which file, line and field it is."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from lakebound.spec.mistakes import describe
from lakebound.spec.problem_lines import problem_line
from lakebound.spec.yaml_source import Mistake, UnreadableYamlError, read_yaml

_M = TypeVar("_M", bound=BaseModel)


def read_model(path: Path, model: type[_M], keys: str) -> tuple[_M | None, list[str]]:
    """Return what a file says; or None and one line per mistake, each ``FILE:LINE: FIELD: what is wrong``.

    Args:
        path: The file.
        model: What it should be.
        keys: The keys that it may have, for the message of a file that has none.
    """
    try:
        source = read_yaml(path)
    except UnreadableYamlError as exc:
        return None, [problem_line(path, exc.mistake)]
    if not isinstance(source.root, dict):
        return None, [problem_line(path, Mistake(1, f"must be keys and values: {keys}"))]
    mistakes = [*source.mistakes]
    found: _M | None = None
    try:
        found = model.model_validate(source.root)
    except ValidationError as exc:
        mistakes += describe(exc, source, model)
    if found is None or mistakes:
        lines = [problem_line(path, mistake) for mistake in sorted(mistakes, key=lambda one: one.line)]
        return None, list(dict.fromkeys(lines))
    return found, []
