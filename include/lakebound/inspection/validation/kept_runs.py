"""The results of earlier runs: the newest are kept, the others go."""

from __future__ import annotations

import shutil

from lakebound.control.folder import ControlFolder
from lakebound.inspection.validation.history import folder


def remove_older_runs(control: ControlFolder, keep: int) -> None:
    """Delete the results and pages of all but the newest runs."""
    runs = folder(control) / "runs"
    if not runs.is_dir():
        return
    newest_first = sorted((one for one in runs.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime, reverse=True)
    for old in newest_first[keep:]:
        shutil.rmtree(old, ignore_errors=True)
