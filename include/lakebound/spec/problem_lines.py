"""A mistake in a YAML file as one line of text: file, line, field, and what is wrong."""

from __future__ import annotations

from pathlib import Path

from lakebound.plain_text import visible_text
from lakebound.spec.mistakes import field_name, secret_keys
from lakebound.spec.yaml_source import Mistake

_LONGEST_NAME, _LONGEST_LINE = 300, 2000


def problem_line(path: Path, mistake: Mistake) -> str:
    """Return ``FILE:LINE: FIELD: what is wrong``."""
    # Below that field a key might be the password itself: `password: {hunter2, hunter2}`.
    keys = secret_keys(mistake.keys) or mistake.keys
    name = field_name(keys)
    return shown_line(
        f"{shown_path(path)}:{mistake.line}: " + (f"{_shortened(name, _LONGEST_NAME)}: " if name else "") + mistake.what
    )


def shown_line(text: str) -> str:
    """Return a text as one line that a terminal and a log show as it is: names in it, and of files, may be anything."""
    return _shortened(visible_text(text), _LONGEST_LINE)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def shown_path(path: Path) -> Path:
    """Return a path as it is shown: from the current folder, where it lies below."""
    cwd = Path.cwd()
    return path.relative_to(cwd) if path.is_relative_to(cwd) else path
