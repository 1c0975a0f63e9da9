"""How far a replay has got: its record in the pipeline's folder, which its application writes."""

from __future__ import annotations

import time
from typing import Any, Literal

from pydantic import Field

from lakebound.control.folder import ControlFolder, StateFile, read_json, write_json
from lakebound.frozen import FrozenRecord

ReplayState = Literal["running", "completed", "stopped", "refused", "failed"]


class TableLanded(FrozenRecord):
    """What a replay has committed to one table."""

    commits: int = 0
    rows: int = 0


class ReplayResult(FrozenRecord):
    """How far a replay has got. Times are epoch seconds; records are those that were read, rows are per table."""

    app_id: str
    state: ReplayState = "running"
    reason: str = ""
    error_class: str | None = None
    chunks_done: int = 0
    chunks: int = 0
    read: int = 0
    filtered: int = 0
    landed: int = 0
    quarantined: int = 0
    tables: dict[str, TableLanded] = Field(default_factory=dict)
    started_at: float = Field(default_factory=time.time)
    ended_at: float | None = None


def result_file(control: ControlFolder, app_id: str) -> StateFile:
    """Return where a replay's record stands."""
    return control.replays / f"{app_id}.json"


def write_result(control: ControlFolder, result: ReplayResult) -> None:
    """Replace the replay's record."""
    write_json(result_file(control, result.app_id), result.model_dump(mode="json"), durable=True)


def read_result(control: ControlFolder, app_id: str) -> ReplayResult | None:
    """Return the replay's record, or None before its first word."""
    body: Any = read_json(result_file(control, app_id), None)
    return None if body is None else ReplayResult.model_validate(body)
