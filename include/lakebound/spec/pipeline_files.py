"""The YAML files of a folder of pipelines: as many as each round of the watch and each process of Airflow can read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from lakebound.spec.problem_lines import problem_line, shown_path
from lakebound.spec.yaml_source import Mistake

SUFFIXES = (".yaml", ".yml")
MOST_FILES = 2_000
MOST_BYTES = 8 * 1024 * 1024
"""Of all files together. A pipeline takes 1 to 4 kB, and 4 ms to read; values without an end took a minute for this much."""
MOST_TOLD = 100
"""Files that are named as not read; of more, the number is told."""


@dataclass(frozen=True)
class PipelineFiles:
    """What is in a folder.

    Attributes:
        read: The files to be read, by name.
        mistakes: Of the folder, and of files that are not read; empty where all are.
    """

    read: tuple[Path, ...]
    mistakes: dict[Path, list[str]]


def pipeline_files(folder: Path) -> PipelineFiles:
    """Return the files of a folder; where they are too many or too large, the smallest: one large file hides no other.

    Args:
        folder: Of the pipelines.
    """
    found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.name[0] != ".")
    sizes = {path: _size(path) for path in found}
    kept: set[Path] = set()
    total = 0
    for path in sorted(found, key=lambda path: (sizes[path], path)):
        total += sizes[path]
        if len(kept) < MOST_FILES and total <= MOST_BYTES:
            kept.add(path)
    left_out = [path for path in found if path not in kept]
    return PipelineFiles(tuple(path for path in found if path in kept), _mistakes(folder, left_out, len(found), total))


def _mistakes(folder: Path, left_out: list[Path], files: int, size: int) -> dict[Path, list[str]]:
    if not left_out:
        return {}
    held = f"{files:,} YAML files with {size:,} bytes; at most {MOST_FILES:,} files with {MOST_BYTES:,} bytes are read"
    way_out = "move files away, or divide them between two installations"
    line = f"{shown_path(folder)}: this folder has {held}, the smallest first: {len(left_out):,} are not read; {way_out}"
    told = {path: [problem_line(path, Mistake(1, f"is not read: its folder has {held}"))] for path in left_out[:MOST_TOLD]}
    return {folder: [line], **told}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
