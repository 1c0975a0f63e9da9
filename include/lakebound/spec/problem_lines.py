"""A mistake in a YAML file as one line of text: file, line, field, and what is wrong."""

from __future__ import annotations

from pathlib import Path

from lakebound.spec.mistakes import field_name, secret_keys
from lakebound.spec.yaml_source import Mistake


def problem_line(path: Path, mistake: Mistake) -> str:
    """Return ``FILE:LINE: FIELD: what is wrong``."""
    # Below that field a key might be the password itself: `password: {hunter2, hunter2}`.
    keys = secret_keys(mistake.keys) or mistake.keys
    name = field_name(keys)
    return f"{shown_path(path)}:{mistake.line}: " + (f"{name}: " if name else "") + mistake.what


def shown_path(path: Path) -> Path:
    """Return a path as it is shown: from the current folder, where it lies below."""
    cwd = Path.cwd()
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path
