"""Python's search for garbage in cycles, of which landing makes next to none."""

from __future__ import annotations

import gc

_ALLOCATIONS = 200_000
"""A slice of a large batch (direct_read.SLICE_RECORDS) makes some 70,000 objects."""


def collect_garbage_seldom() -> None:
    """Leave out what there is now, and search only after many new objects: else half of the time of a read goes there."""
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
