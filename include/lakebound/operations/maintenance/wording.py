"""Sizes, counts and ages as a person says them."""

from __future__ import annotations

# Not those of the YAML's model: each command imports this module, and must not import pydantic for its help.
HOUR_SECONDS = 3_600.0
DAY_SECONDS = 24 * HOUR_SECONDS
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size_words(size_bytes: float) -> str:
    """Return a size with at most one digit after the point, such as ``8.2 MiB`` or ``128 MiB``."""
    size, unit = float(size_bytes), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + f" {_UNITS[unit]}"


def count_words(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun, such as ``1 file`` or ``2,000 files``.

    Args:
        count: How many there are.
        one: The noun in the singular.
        many: The noun in the plural; None adds an s to ``one``.
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def age_seconds(at_ms: int | None, now_ms: int) -> float:
    """Return how long ago something was; for ever where it never was."""
    return float("inf") if at_ms is None else (now_ms - at_ms) / 1000


def ago(seconds: float) -> str:
    """Return how long ago in words."""
    return f"{seconds / DAY_SECONDS:.3g} days" if seconds >= 2 * DAY_SECONDS else f"{seconds / HOUR_SECONDS:.3g} hours"
