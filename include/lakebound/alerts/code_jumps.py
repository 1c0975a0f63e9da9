"""What differs between the rows of a new version of the code and those of the version before. Pure.

A share *jumps* if it lies outside of everything that was seen before and differs enough. How much is enough are rules of thumb:
what never happened before is told early, what varies anyway late. The slices of the version before show how much it varies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lakebound.control.code_samples import MOST_VALUES, OTHER_VALUES, ColumnCounts, Slice, Values, VersionSamples

LEAST_RECORDS = 200
"""Records of either version, and values of a column: with fewer nothing is compared."""
LEAST_PART = 50
"""Records of a slice that shows how much a share varies."""
LEAST_PARTS = 3
"""Slices of the version before; with fewer it is not known how much a share varies."""
NEW_SHARE, NEW_COUNT = 0.01, 5
"""What never, or always, happened before: from this share on, and from so many on."""
OTHER_SHARE, UNSURE_SHARE = 0.05, 0.2
"""What happened sometimes: the difference of two shares, and the same if it is not known how much a share varies."""
ROWS_FACTOR, UNSURE_FACTOR = 1.5, 2.0
"""Rows per record, up or down."""
UNSEEN_SHARE = 0.1
"""Of values that the version before never had."""
RARE_SHARE = 0.02
"""A value below it may be missing in what is compared."""


@dataclass(frozen=True)
class Jump:
    """A difference.

    Attributes:
        what: Such as "records filtered", or "column city is null".
        before: With the version before.
        now: With the new version.
        size: For the order: the larger, the worse.
        is_share: Whether both are shares, from 0 to 1.
    """

    what: str
    before: float
    now: float
    size: float
    is_share: bool = True

    @property
    def sentence(self) -> str:
        """Both figures."""
        if self.is_share:
            return f"{self.what}: {_percent(self.now)} (before: {_percent(self.before)})"
        return f"{self.what}: {self.now:.3g} (before: {self.before:.3g})"


def _percent(share: float) -> str:
    return f"{share * 100:.3g} %"


def jumps(before: VersionSamples, current: VersionSamples) -> tuple[Jump, ...]:
    """Return what differs, the largest difference first.

    Args:
        before: Of the version before; all that was seen of it.
        current: Of the new version; its first slices count.
    """
    if sum(one.read for one in before.slices) < LEAST_RECORDS or sum(one.read for one in current.first) < LEAST_RECORDS:
        return ()
    found = [
        *_of_records(before.slices, current.first),
        *_of_columns(before.slices, current.first),
        *_of_values(before.values, current.values),
    ]
    return tuple(sorted(found, key=lambda one: (-one.size, one.what)))


Counted = Callable[[Slice], tuple[int, int]]
"""How many of how many."""


def _of_records(before: Sequence[Slice], now: Sequence[Slice]) -> Iterator[Jump]:
    for what, counted in (
        ("records filtered", lambda one: (one.filtered, one.read)),
        ("records in quarantine", lambda one: (one.quarantined, one.read)),
    ):
        yield from _share_jump(what, before, now, counted)
    parts = [one for one in before if one.landed >= LEAST_PART]
    landed_before, landed = sum(one.landed for one in before), sum(one.landed for one in now)
    if min(landed_before, landed) < LEAST_RECORDS:
        return
    was, is_now = sum(one.rows for one in before) / landed_before, sum(one.rows for one in now) / landed
    seen = [one.rows / one.landed for one in parts]
    least = ROWS_FACTOR if len(parts) >= LEAST_PARTS else UNSURE_FACTOR
    if not min(seen, default=was) <= is_now <= max(seen, default=was):
        factor = max(was, is_now) / max(min(was, is_now), 1e-9)
        if factor >= least:
            yield Jump("rows per record", was, is_now, min(1.0, 1 - 1 / factor), is_share=False)


def _of_columns(before: Sequence[Slice], now: Sequence[Slice]) -> Iterator[Jump]:
    none = ColumnCounts()

    def nulls_of(column: str) -> Counted:
        def counted(one: Slice) -> tuple[int, int]:
            found = one.columns.get(column, none)
            return found.nulls, found.values

        return counted

    for column in dict.fromkeys(name for one in now for name in one.columns):
        yield from _share_jump(f"column {column} is null", before, now, nulls_of(column))


def _share_jump(what: str, before: Sequence[Slice], now: Sequence[Slice], counted: Counted) -> Iterator[Jump]:
    old = [counted(one) for one in before]
    old_count, old_of = (sum(part) for part in zip(*old, strict=True))
    new_count, new_of = (sum(part) for part in zip(*map(counted, now), strict=True))
    if min(old_of, new_of) < LEAST_RECORDS:
        return
    was, is_now = old_count / old_of, new_count / new_of
    parts = [count / of for count, of in old if of >= LEAST_PART]
    if min(parts, default=was) <= is_now <= max(parts, default=was):
        return
    if old_count in (0, old_of):
        changed = abs(new_count - (0 if old_count == 0 else new_of))
        is_enough = changed >= NEW_COUNT and abs(is_now - was) >= NEW_SHARE
    else:
        is_enough = abs(is_now - was) >= (OTHER_SHARE if len(parts) >= LEAST_PARTS else UNSURE_SHARE)
    if is_enough:
        yield Jump(what, was, is_now, abs(is_now - was))


def _of_values(before: dict[str, Values], now: dict[str, Values]) -> Iterator[Jump]:
    """Yield what is new in columns that had few values, and which have lost at least half of these."""
    for column, seen in now.items():
        had = before.get(column, {})
        of, of_before = sum(seen.values()), sum(had.values())
        if min(of, of_before) < LEAST_RECORDS or OTHER_VALUES in had or not 0 < len(had) <= MOST_VALUES:
            continue
        unseen = sum(count for value, count in seen.items() if value not in had) / of
        if unseen >= UNSEEN_SHARE and len(had) * 10 <= of_before:
            yield Jump(f"column {column} has values that it did not have", 0.0, unseen, unseen)
        frequent = [value for value, count in had.items() if count >= RARE_SHARE * of_before]
        left = sum(value in seen for value in frequent)
        if len(frequent) >= 2 and left * 2 <= len(frequent):
            size = 1 - left / len(frequent)
            yield Jump(f"of the frequent values of column {column} are there", len(frequent), left, size, is_share=False)
