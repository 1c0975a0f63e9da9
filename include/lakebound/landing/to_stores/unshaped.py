"""A store whose ledger does not say its shape, as earlier versions left it: what in it is not of the pipeline's shape. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lakebound.landing.to_stores.shape import StoreShape
from lakebound.spec.to_stores import COUNT

_KEYS = {"whole number": re.compile(rb"-?\d+"), "date": re.compile(rb"-?\d+-\d\d-\d\d")}


@dataclass
class Buckets:
    """The counters of a whole store, added up over its keys.

    Attributes:
        totals: Of the windows by the name that readers see, with the begin of each bucket and what is counted.
    """

    totals: Counter[tuple[str, int, str]] = field(default_factory=Counter)

    def add(self, window: str, begin: int, counted: Mapping[str, int]) -> None:
        """Add a bucket of one key."""
        for what, number in counted.items():
            self.totals[window, begin, what] += number


def bucket_contradiction(shape: StoreShape, found: Buckets, at: int) -> str | None:
    """Return what shows that buckets were counted otherwise than by the shape; None where nothing does.

    A record that lies in a bucket of two windows is counted in both: so the newest buckets of two windows say the same.

    Args:
        shape: That of the pipeline.
        found: What the store holds.
        at: When its newest commit was made, in seconds: buckets before their window may be gone since.
    """
    begins = {(window, begin) for window, begin, _ in found.totals}
    for window, begin in sorted(begins):
        if window not in shape.windows:
            return f"counters.windows: it has buckets of {window}, which the pipeline does not count"
        if begin % shape.windows[window][1]:
            return f"counters.windows: it has buckets of {window} that do not begin every {shape.windows[window][1]} s"
    longest = max(shape.windows, key=lambda name: shape.windows[name])
    for window in shape.windows:
        if window != longest and (what := _difference(shape, found, at, window, longest)) is not None:
            return f"counters.windows: its buckets of {window} and of {longest} count different records ({what})"
    return None


def key_contradiction(shape: StoreShape, key: bytes) -> str | None:
    """Return what shows that a key in Redis is not of the shape's column; None where nothing does: of a text, nothing can."""
    pattern = _KEYS.get(shape.types.get(shape.key, ""))
    return f"key: its keys are not the values of {shape.key!r}" if pattern is not None and not pattern.fullmatch(key) else None


def row_contradiction(shape: StoreShape, rows: Iterable[tuple[bytes, Mapping[bytes, bytes]]]) -> str | None:
    """Return what shows that rows in Redis were written otherwise than by the shape; None where nothing does.

    Args:
        shape: That of the pipeline.
        rows: Key without the store's name, and fields, of each.
    """
    known = {name.encode() for name in shape.types}
    for key, fields in rows:
        if fields.get(shape.key.encode()) != key:
            return f"key: its keys are not the values of {shape.key!r}"
        if unknown := sorted({*fields} - known):
            return f"columns: {unknown[0].decode(errors='replace')!r} is in its rows, and the pipeline does not write it"
    return None


def field_contradiction(shape: StoreShape, fields: Mapping[bytes, bytes], into: Buckets) -> str | None:
    """Add the counters of a key in Redis, and return what shows that they were counted otherwise.

    Args:
        shape: That of the pipeline.
        fields: Of the hash.
        into: The counters of the store so far.
    """
    counted: dict[tuple[str, int], dict[str, int]] = {}
    for name, value in fields.items():
        in_window, _, rest = name.decode(errors="replace").partition(":")
        since, _, what = rest.partition(":")
        try:
            counted.setdefault((in_window, int(since)), {})[what] = int(value)
        except ValueError:
            return "counters: it holds fields that are not counters"
    wanted = {COUNT, *shape.sums}
    for (window, begin), numbers in counted.items():
        if other := sorted({*numbers} ^ wanted):
            return f"counters.sums: {other[0]!r} is not in all of its buckets, or in more than the pipeline counts"
        into.add(window, begin, numbers)
    return None


def _difference(shape: StoreShape, found: Buckets, at: int, window: str, longest: str) -> str | None:
    (whole, length), (_, longest_length) = shape.windows[window], shape.windows[longest]
    step = math.lcm(length, longest_length)
    # All records since then are in both: no bucket that begins then or later has left its window, or holds an earlier record.
    since = (max(at - whole - length, at - shape.windows[longest][0] - longest_length) // step + 1) * step
    for what in (COUNT, *shape.sums):
        held = [
            sum(number for (name, begin, of), number in found.totals.items() if (name, of) == (one, what) and begin >= since)
            for one in (window, longest)
        ]
        if held[0] != held[1]:
            return f"{what}: {held[0]:,} and {held[1]:,}"
    return None
