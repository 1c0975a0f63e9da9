"""How far a backfill (a replay, a release) has got: its record in the pipeline's folder, which its application writes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

from pydantic import Field

from lakebound.control.folder import ControlFolder, StateFile, read_json, write_json
from lakebound.frozen import FrozenRecord

ReplayState = Literal["running", "completed", "stopped", "refused", "failed"]


@dataclass(frozen=True)
class PieceCounts:
    """Records of one piece of a backfill: ``read = filtered + landed + quarantined``, where something is landed.

    Attributes:
        read: Those that were tried.
        filtered: Those that gave no row.
        landed: Those that gave rows.
        quarantined: Those that are, or stay, in quarantine.
        verdicts: Of a release, by the reason in the quarantine: how many ``fit``, and how many ``stay``.
        left_out: Of a release, schemas of records that the tables cannot follow, and why.
    """

    read: int = 0
    filtered: int = 0
    landed: int = 0
    quarantined: int = 0
    verdicts: Mapping[str, Counter[str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


class TableLanded(FrozenRecord):
    """What a backfill has committed to one table."""

    commits: int = 0
    rows: int = 0


class ReplayResult(FrozenRecord):
    """How far a backfill has got. Times are epoch seconds; records are those that were read, rows are per table."""

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

    def plus(self, piece: PieceCounts) -> Self:
        """Return the record after one more piece."""
        sums = {name: getattr(self, name) + getattr(piece, name) for name in ("read", "filtered", "landed", "quarantined")}
        return self.model_copy(update=sums)


Result = TypeVar("Result", bound=ReplayResult)


def result_file(control: ControlFolder, app_id: str) -> StateFile:
    """Return where a backfill's record stands."""
    return control.replays / f"{app_id}.json"


def write_result(control: ControlFolder, result: ReplayResult) -> None:
    """Replace the backfill's record."""
    write_json(result_file(control, result.app_id), result.model_dump(mode="json"), durable=True)


def read_result(control: ControlFolder, app_id: str, kind: type[Result]) -> Result | None:
    """Return the record of a backfill of some kind, or None before its first word."""
    body: Any = read_json(result_file(control, app_id), None)
    return None if body is None else kind.model_validate(body)
