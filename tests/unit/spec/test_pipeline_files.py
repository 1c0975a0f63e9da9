"""A folder with more pipelines than anybody can read stops nobody: the smallest files are read, and the others are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.streams.pipeline_files import SMALL, settings

from lakebound.settings import Settings
from lakebound.spec import pipeline_files as files
from lakebound.spec.load import load_pipelines, load_unbound

__all__ = ["settings"]


def fill(settings: Settings, count: int, comment: int = 0) -> None:
    for number in range(count):
        name = f"p{number}"
        (settings.pipelines / f"{name}.yaml").write_text(SMALL.replace("NAME", name) + f"# {'x' * comment}\n")


def test_a_folder_of_any_usual_size_is_read_whole(settings: Settings) -> None:
    fill(settings, 30)
    loaded = load_pipelines(settings)
    assert len(loaded.specs) == 30 and not loaded.problems


def test_too_many_files_are_told_with_their_number(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(settings, 9)
    monkeypatch.setattr(files, "MOST_FILES", 4)
    monkeypatch.setattr(files, "MOST_TOLD", 2)
    loaded = load_pipelines(settings)
    assert len(loaded.specs) == 4 == len(load_unbound(settings))
    (line,) = loaded.mistakes[settings.pipelines]
    assert "has 9 YAML files" in line and "at most 4 files" in line and "5 are not read" in line
    assert len(loaded.mistakes) == 3, "the folder, and as many files as are named"
    assert all(lines[0].endswith("are read") for path, lines in loaded.mistakes.items() if path != settings.pipelines)


def test_large_files_hide_no_small_one(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    (settings.pipelines / "a0.yaml").write_text("pipeline: a0\n# " + "x" * 5000)
    (settings.pipelines / "a1.yaml").write_text("pipeline: a1\n# " + "x" * 5000)
    fill(settings, 3)
    monkeypatch.setattr(files, "MOST_BYTES", 6000)
    loaded = load_pipelines(settings)
    assert loaded.specs.keys() == {"p0", "p1", "p2"}
    assert {path.name for path in loaded.mistakes if path.suffix} == {"a0.yaml", "a1.yaml"}


def test_a_link_that_leads_nowhere_has_no_size(settings: Settings, tmp_path: Path) -> None:
    (settings.pipelines / "x.yaml").symlink_to(tmp_path / "nowhere")
    fill(settings, 1)
    loaded = load_pipelines(settings)
    assert loaded.specs.keys() == {"p0"} and len(loaded.problems) == 1
