"""What people's tools make of a table: a frame of one kind or another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def rows_in(frame: Any) -> int:
    """Return how many rows a tool's result has."""
    if hasattr(frame, "fetchall"):
        return len(frame.fetchall())
    return int(frame.num_rows if isinstance(frame, pa.Table) else len(frame))
