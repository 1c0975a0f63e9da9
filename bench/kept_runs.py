"""Runs of the benchmarks, a line of JSON each: kept as soon as one has ended, so that a benchmark goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakebound.control.folder import write_text

Run = dict[str, Any]
DOCS = Path(__file__).resolve().parents[1] / "docs"
COMPARISON, DRAIN, STEADY, REAL_TIME = (
    DOCS / "benchmarks" / f"{name}.jsonl" for name in ("comparison", "drain", "steady", "real-time")
)


def kept(log: Path) -> list[Run]:
    """Return the runs that were made already."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def keep(log: Path, run: Run, is_replaced: Callable[[Run], bool]) -> None:
    """Add a run to those that were made, in the place of those that it replaces."""
    runs = [*(one for one in kept(log) if not is_replaced(one)), run]
    write_text(log, "".join(f"{json.dumps(one)}\n" for one in runs))
