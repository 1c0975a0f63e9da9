"""How long ago something was, in seconds and in words."""

from __future__ import annotations

from lakebound.spec.maintenance import DAY_SECONDS, HOUR_SECONDS


def age_seconds(at_ms: int | None, now_ms: int) -> float:
    """Return how long ago something was; for ever where it never was."""
    return float("inf") if at_ms is None else (now_ms - at_ms) / 1000


def ago(seconds: float) -> str:
    """Return how long ago in words."""
    return f"{seconds / DAY_SECONDS:.3g} days" if seconds >= 2 * DAY_SECONDS else f"{seconds / HOUR_SECONDS:.3g} hours"
